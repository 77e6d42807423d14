#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/model_executor.h"
#include "engine/model_runner.h"
#include "scheduler/scheduler.h"

namespace ingot::parity {

// A request as a test writes it: text is tokenized beforehand.
struct ServedRequest {
  scheduler::Request request;
  engine::DrawingOptions drawing;
};

struct ServedAnswer {
  std::vector<int32_t> tokens;
  std::vector<engine::TokenLogprobs> logprobs;         // of the tokens
  std::vector<engine::TokenLogprobs> prompt_logprobs;  // from the prompt's second token on
  scheduler::RequestReport report;
};

// The bundled model with its MTP layer, served by the real scheduler and executor in one loop. The
// scheduler's invariants are checked in every step.
class ServedModel {
 public:
  explicit ServedModel(int threads);

  struct Run {
    std::map<scheduler::RequestId, ServedAnswer> answers;
    scheduler::SchedulerStats stats;
  };
  // All requests arrive at once, and the steps go on until all are answered.
  Run serve(const scheduler::SchedulerConfig& config, const std::vector<ServedRequest>& requests);

  std::vector<int32_t> tokens_of(const std::string& text) const;
  int64_t vocab_size() const { return loaded_->config().vocab_size; }

 private:
  base::SystemClock clock_;
  base::ThreadTeam team_;
  std::unique_ptr<engine::LoadedModel> loaded_;
};

}  // namespace ingot::parity
