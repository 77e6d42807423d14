#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/model_runner.h"
#include "engine/step_drawer.h"
#include "engine/token_mask.h"
#include "scheduler/executor.h"

namespace ingot::engine {

// What the parts of a step took.
struct StepTimes {
  base::Duration drafting = {};
  base::Duration forward = {};  // of all rows, with those that the MTP layer writes
  base::Duration drawing = {};  // and accepting
};

struct ExecutorOptions {
  // As StepDrawer's; of synthetic weights only.
  std::vector<double> simulated_acceptance = {};
};

// Whether acceptance may be simulated so on this model; an empty list always may.
// Errors: the weights are real, a number is not a probability.
base::Status check_simulated_acceptance(std::span<const double> acceptance,
                                        const model::ModelConfig& config);

// The scheduler's executor: runs its batches on a model, drafts, verifies and draws. What goes
// wrong with one sequence is that sequence's error; what goes wrong with a step, an exception
// included, is the error of all its sequences, and the next batch runs as if it had not been.
// One thread uses it, that of its runner.
class ModelExecutor final : public scheduler::Executor {
 public:
  // `runner` and `clock` must outlive it. `drawable` as StepDrawer has it.
  // REQUIRES: check_simulated_acceptance passed.
  ModelExecutor(ModelRunner& runner, TokenMask drawable, const base::Clock& clock,
                ExecutorOptions options = {});

  // As StepDrawer's.
  void add(scheduler::RequestId id, std::span<const int32_t> prompt, DrawingOptions options) {
    drawer_.add(id, prompt, std::move(options));
  }
  void remove(scheduler::RequestId id) { drawer_.remove(id); }

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override;

  // Of the last step, in the batch's order; empty where nobody asked. Tells of every drawn token,
  // also of those after a stop token, which the scheduler drops. May be moved from.
  std::span<StepLogprobs> logprobs() { return logprobs_; }

  // What the model drafted in the last step for the batch's sequence number `index`; right or not.
  std::span<const int32_t> drafts(size_t index) const {
    return runner_.last_step().sequences.at(index).drafts;
  }

  // Of the last step; nothing where that failed as a whole.
  const StepTimes& times() const { return times_; }

 private:
  void run(const scheduler::Batch& batch);
  void fail_all(size_t num_sequences, const std::string& message) noexcept;

  ModelRunner& runner_;
  const base::Clock& clock_;
  StepDrawer drawer_;
  scheduler::StepResult result_;
  std::vector<StepLogprobs> logprobs_;
  StepTimes times_;
};

}  // namespace ingot::engine
