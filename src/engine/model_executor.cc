#include "engine/model_executor.h"

#include "base/check.h"
#include "engine/caught_exception.h"

namespace ingot::engine {

base::Status check_simulated_acceptance(std::span<const double> acceptance,
                                        const model::ModelConfig& config) {
  if (!acceptance.empty() && !config.synthetic_weights) {
    return base::error(
        "--simulate-acceptance is for weights that `ingot synth` made; these are real, and their "
        "output would be wrong");
  }
  for (const double probability : acceptance) {
    if (0 <= probability && probability <= 1) continue;
    return base::error("--simulate-acceptance: {} is not a probability from 0 to 1", probability);
  }
  return {};
}

ModelExecutor::ModelExecutor(ModelRunner& runner, TokenMask drawable, const base::Clock& clock,
                             ExecutorOptions options)
    : runner_(runner),
      clock_(clock),
      drawer_(runner.config().vocab_size, std::move(drawable), runner.team(),
              options.simulated_acceptance) {
  CHECK(check_simulated_acceptance(options.simulated_acceptance, runner.config()));
  // So that telling of a failure needs no memory for it.
  const auto num_slots = static_cast<size_t>(runner.capacity().num_slots);
  result_.sequences.reserve(num_slots);
  logprobs_.reserve(num_slots);
}

const scheduler::StepResult& ModelExecutor::execute(const scheduler::Batch& batch) {
  CHECK(std::ssize(batch.sequences) <= runner_.capacity().num_slots);
  times_ = {};
  try {
    run(batch);
  } catch (...) {
    fail_all(batch.sequences.size(), caught_message());
  }
  return result_;
}

void ModelExecutor::run(const scheduler::Batch& batch) {
  result_.sequences.assign(batch.sequences.size(), {});
  logprobs_.assign(batch.sequences.size(), {});
  const base::Instant begin = clock_.now();
  runner_.draft_step(batch);
  const base::Instant drafted = clock_.now();
  const ComputedStep& step = runner_.compute_step(batch);
  const base::Instant computed = clock_.now();
  drawer_.draw(batch, step, result_.sequences, logprobs_);
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    // All drawn tokens but the last one are accepted drafts.
    const auto num_drawn = static_cast<int32_t>(result_.sequences[i].tokens.size());
    if (num_drawn > 1) runner_.accept(i, num_drawn - 1);
  }
  times_ = {.drafting = drafted - begin,
            .forward = computed - drafted,
            .drawing = clock_.now() - computed};
}

void ModelExecutor::fail_all(size_t num_sequences, const std::string& message) noexcept {
  result_.sequences.assign(num_sequences, {});
  logprobs_.assign(num_sequences, {});
  for (scheduler::StepResult::Sequence& sequence : result_.sequences) {
    sequence.error = copy_of(message);
  }
}

}  // namespace ingot::engine
