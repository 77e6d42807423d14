#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "engine/model_executor.h"
#include "engine/model_runner.h"
#include "scheduler/scheduler.h"

namespace ingot::parity {

// A request as a test writes it: text is tokenized beforehand.
struct ServedRequest {
  scheduler::Request request;
  engine::DrawingOptions drawing;
  int arrives_before_step = 0;
};

struct ServedAnswer {
  std::vector<int32_t> tokens;
  std::vector<engine::TokenLogprobs> logprobs;         // of the tokens
  std::vector<engine::TokenLogprobs> prompt_logprobs;  // from the prompt's second token on
  scheduler::RequestReport report;
};

// The bundled model, served by the real scheduler and executor in one loop; with its MTP layer
// where the scheduler knows of it. In every step the scheduler's invariants are checked, and a
// ShadowCache beside the model whether every row reads what its own tokens left there.
class ServedModel {
 public:
  explicit ServedModel(int threads);

  struct Run {
    std::map<scheduler::RequestId, ServedAnswer> answers;
    scheduler::SchedulerStats stats;
    std::optional<base::Error> violation;
  };
  // What a test changes in a batch between scheduler and executor.
  using Tamper = std::function<void(scheduler::Batch&)>;

  // Steps until all are answered. Without a tamper, a violation is a failure of the test.
  Run serve(const scheduler::SchedulerConfig& config, const std::vector<ServedRequest>& requests,
            const Tamper& tamper = {});

  int32_t vocab_size() const { return static_cast<int32_t>(plain_->config().vocab_size); }
  std::vector<int32_t> tokens_of(const std::string& text) const;

 private:
  base::SystemClock clock_;
  base::ThreadTeam team_;
  std::unique_ptr<engine::LoadedModel> plain_;
  std::unique_ptr<engine::LoadedModel> with_mtp_;
};

}  // namespace ingot::parity
