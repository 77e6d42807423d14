#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "engine/model_runner.h"
#include "engine/sampler.h"
#include "engine/sampling_params.h"
#include "engine/token_history.h"
#include "engine/token_logprobs.h"
#include "engine/token_mask.h"
#include "scheduler/executor.h"

namespace ingot::engine {

// What drawing a request's tokens takes, beside what its batches say.
struct DrawingOptions {
  SamplingParams sampling = {};
  int32_t min_tokens = 0;                    // before as many,
  std::vector<int32_t> stop_token_ids = {};  // these cannot be drawn
  bool wants_prompt_logprobs = false;        // with sampling.num_top_logprobs
};

// What a step told beside its tokens, for a sequence of the batch.
struct StepLogprobs {
  std::vector<TokenLogprobs> drawn = {};   // of each drawn token
  std::vector<TokenLogprobs> prompt = {};  // of the prompt's tokens that follow the step's rows
};

// The scheduler's executor: runs its batches on a model, drafts, verifies and draws.
//
// A draft is accepted when it equals the token that would be drawn in its place, by the same
// logits, history and random number. So a request's tokens are the same whatever is drafted, and
// with whom it runs. What goes wrong with one sequence (logits that are not finite, a mask that
// allows nothing) is that sequence's error. One thread uses it, that of its runner.
class ModelExecutor final : public scheduler::Executor {
 public:
  // `runner` must outlive it. Ids outside of `drawable` are never drawn: padding of the vocabulary.
  ModelExecutor(ModelRunner& runner, TokenMask drawable);

  // Before the request's first batch. REQUIRES: check(options.sampling) passed, ids are in the
  // vocabulary.
  void add(scheduler::RequestId id, std::span<const int32_t> prompt, DrawingOptions options);
  // After its report.
  void remove(scheduler::RequestId id);

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override;

  // Of the last step, in the batch's order; empty where nobody asked. Tells of every drawn token,
  // also of those after a stop token, which the scheduler drops. May be moved from.
  std::span<StepLogprobs> logprobs() { return logprobs_; }

  // What the model drafted in the last step for the batch's sequence number `index`; right or not.
  std::span<const int32_t> drafts(size_t index) const {
    return runner_.last_step().sequences.at(index).drafts;
  }

 private:
  // A request's state that outlives its steps, preemptions included.
  struct Drawing {
    DrawingOptions options;
    std::vector<int32_t> prompt;  // where its logprobs are wanted
    TokenHistory history;
    std::optional<TokenMask> mask;  // while min_tokens is not reached
    int32_t num_drawn = 0;
  };

  base::Status draw_sequence(const scheduler::Batch::Sequence& sequence,
                             const ComputedStep::Sequence& computed, Drawing& drawing,
                             size_t index);
  base::Status tell_prompt_logprobs(const scheduler::Batch::Sequence& sequence,
                                    const ComputedStep::Sequence& computed, const Drawing& drawing,
                                    StepLogprobs& told);
  base::Result<DrawnToken> draw_next(std::span<const float> logits, Drawing& drawing);
  std::span<const float> logit_row(int64_t row) const;

  ModelRunner& runner_;
  const TokenMask drawable_;
  DrawScratch scratch_;
  std::unordered_map<scheduler::RequestId, Drawing> drawings_;
  std::span<const float> logits_;  // of the step
  scheduler::StepResult result_;
  std::vector<StepLogprobs> logprobs_;
};

}  // namespace ingot::engine
