#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/engine_request.h"
#include "soak/answer.h"
#include "text/tokenizer.h"

namespace ingot::soak {

// What the requests are drawn within.
struct PlanLimits {
  int32_t max_request_tokens = 0;
  int32_t vocab_size = 0;
};

// A request of every kind of prompt and option, drawn from the seed and its number: what is asked,
// and not when, with whom, or how urgently.
engine::EngineRequest draw_request(uint64_t seed, size_t number, const text::Tokenizer& tokenizer,
                                   const PlanLimits& limits);

// The next turn of a conversation: the request, its answer, and another question.
engine::EngineRequest draw_next_turn(uint64_t seed, size_t number,
                                     const engine::EngineRequest& turn, const Answer& answer,
                                     const text::Tokenizer& tokenizer, const PlanLimits& limits);

// The requests that a soak repeats, each with the answer that it always has to have: the one that
// it got alone, or else its first one. Any thread may use it once all are added.
class PlanPool {
 public:
  void add(engine::EngineRequest request, std::optional<Answer> alone = {});

  size_t size() const { return plans_.size(); }
  const engine::EngineRequest& request(size_t plan) const { return plans_[plan].request; }

  // What is wrong with this answer to the plan.
  base::Status check(size_t plan, const Answer& answer);

  // Plans with an answer that others were held against.
  int64_t num_confirmed() const;

 private:
  struct Plan {
    engine::EngineRequest request;
    std::optional<Answer> whole;
    int64_t num_confirmations = 0;
  };

  mutable std::mutex mutex_;  // of answers and counts; the requests never change
  std::vector<Plan> plans_;
};

}  // namespace ingot::soak
