#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "base/result.h"

namespace ingot::engine {

// How the next token is drawn from a row of logits.
struct SamplingParams {
  double temperature = 0;  // 0 takes the most likely token
  uint64_t seed = 0;
};

// The index of the largest value, the first of equals. REQUIRES: !values.empty().
int32_t argmax(std::span<const float> values);

// Natural logarithm of the sum of exp(values), computed in double.
double log_sum_exp(std::span<const float> values);

// An error when a logit is NaN or infinite. `where` continues "the logits ...".
base::Status check_finite(std::span<const float> logits, std::string_view where);

// The token at `output_position` (0 for the first generated one). Draws by inverse CDF in order of
// ids with one uniform that is a function of seed and position alone, so that the same request
// gives the same tokens whatever runs beside it. REQUIRES: finite logits, temperature >= 0.
int32_t sample(std::span<const float> logits, const SamplingParams& params,
               int64_t output_position);

}  // namespace ingot::engine
