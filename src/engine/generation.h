#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/model_runner.h"
#include "engine/sampler.h"
#include "scheduler/request.h"

namespace ingot::engine {

// kStop: an end-of-sequence id, which is not part of the output. kLength: max_tokens, or the last
// position of the model or of the cache. kCancelled: the caller did not want more.
using scheduler::FinishReason;

struct GenerationRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  SamplingParams sampling;
  // By id, whether it may be drawn; ids beyond the end may not. Empty: all may.
  std::vector<uint8_t> drawable_ids;
};

// What may happen on the way, on the calling thread. Either may be empty.
struct GenerationHooks {
  std::function<base::Status(int32_t token)> on_token;  // the next one; an error ends it
  std::function<bool()> wants_more;                     // asked before every step
  // Told before every step until the first token how much of the prompt the cache holds.
  std::function<void(size_t num_tokens)> on_prompt;
};

struct Generation {
  std::vector<int32_t> token_ids;
  FinishReason finish_reason = FinishReason::kLength;
  size_t num_cached_tokens = 0;  // of the prompt, that were in the cache
  base::Duration prefill{};      // until the first token was drawn
  base::Duration decode{};       // from there to the last one
};

// Continues prompts, one after another, alone on a runner. What a prompt has in common with the
// tokens of the last one, output included, is not computed again.
class Generator {
 public:
  // Both must outlive it.
  Generator(ModelRunner& runner, const base::Clock& clock) : runner_(runner), clock_(clock) {}

  // Errors: logits that are not finite, and the hook's.
  // REQUIRES: check_sequences passed for the prompt, it fits the runner's context, and the model
  // runs without its MTP layer.
  base::Result<Generation> generate(const GenerationRequest& request,
                                    const GenerationHooks& hooks = {});

 private:
  scheduler::Batch next_batch(const std::vector<int32_t>& known) const;
  std::span<const float> drawable(std::span<const float> logits, const GenerationRequest& request);

  ModelRunner& runner_;
  const base::Clock& clock_;
  std::vector<int32_t> computed_;  // tokens whose rows are in the cache
  std::vector<float> logits_;      // with those of ids that may not be drawn taken out
};

// One slot with cache for the prompt and max_tokens, cut at the model's positions.
RunnerCapacity generation_capacity(const GenerationRequest& request,
                                   const model::ModelConfig& config);
// One slot with cache for `context` tokens, cut at the model's positions.
RunnerCapacity generation_capacity(int64_t context, const model::ModelConfig& config);

}  // namespace ingot::engine
