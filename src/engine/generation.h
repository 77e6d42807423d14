#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/model_executor.h"
#include "engine/sampler.h"

namespace ingot::engine {

enum class FinishReason : uint8_t {
  kStop,    // an end-of-sequence id, which is not part of the output
  kLength,  // max_tokens, or the model's last position
};
std::string_view name(FinishReason reason);

struct GenerationRequest {
  std::vector<int32_t> prompt;
  int64_t max_tokens = 0;
  SamplingParams sampling;
};

struct Generation {
  std::vector<int32_t> token_ids;
  FinishReason finish_reason = FinishReason::kLength;
  base::Duration prefill{};  // until the first token was drawn
  base::Duration decode{};   // from there to the last one
};

// Continues one prompt, alone on the executor. Errors: logits that are not finite.
// REQUIRES: check_sequences passed for the prompt, and the capacity is generation_capacity's.
base::Result<Generation> generate(ModelExecutor& executor, const GenerationRequest& request,
                                  const base::Clock& clock);

// One slot with cache for the prompt and max_tokens, cut at the model's positions.
ExecutorCapacity generation_capacity(const GenerationRequest& request,
                                     const model::ModelConfig& config);

}  // namespace ingot::engine
