#include "engine/sampling_params.h"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace ingot::engine {
namespace {

// Of the two ranges that a field may have, the one that holds 0 and the one that does not.
enum class LowEnd : uint8_t { kIncluded, kExcluded };

base::Status check_range(std::string_view field, double value, double low, double high,
                         LowEnd low_end = LowEnd::kIncluded) {
  const bool included = low_end == LowEnd::kIncluded;
  // NaN fails both comparisons.
  if ((included ? value >= low : value > low) && value <= high) return {};
  return base::error("{} is {}; it must be {} {} and at most {}", field, value,
                     included ? "at least" : "above", low, high);
}

base::Status check_bias(const std::vector<TokenBias>& logit_bias, int64_t vocab_size) {
  std::vector<int32_t> ids;
  ids.reserve(logit_bias.size());
  for (const TokenBias& entry : logit_bias) {
    if (entry.id < 0 || entry.id >= vocab_size) {
      return base::error("logit_bias names token {}; ids are from 0 to {}", entry.id,
                         vocab_size - 1);
    }
    if (!(std::abs(entry.bias) <= 100)) {
      return base::error("logit_bias of token {} is {}; it must be at least -100 and at most 100",
                         entry.id, entry.bias);
    }
    ids.push_back(entry.id);
  }
  std::ranges::sort(ids);
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice == ids.end()) return {};
  return base::error("logit_bias names token {} twice; give each id once", *twice);
}

}  // namespace

base::Status check(const SamplingParams& params, int64_t vocab_size) {
  TRY(check_range("temperature", params.temperature, 0, 100));
  if (params.top_k < 0) {
    return base::error("top_k is {}; it must be at least 0, and 0 keeps all tokens", params.top_k);
  }
  TRY(check_range("top_p", params.top_p, 0, 1, LowEnd::kExcluded));
  TRY(check_range("min_p", params.min_p, 0, 1));
  TRY(check_range("repetition_penalty", params.repetition_penalty, 0, 100, LowEnd::kExcluded));
  TRY(check_range("presence_penalty", params.presence_penalty, -2, 2));
  TRY(check_range("frequency_penalty", params.frequency_penalty, -2, 2));
  if (params.num_top_logprobs) {
    TRY(check_range("num_top_logprobs", *params.num_top_logprobs, 0, kTopLogprobsMax));
  }
  return check_bias(params.logit_bias, vocab_size);
}

bool uses_history(const SamplingParams& params) {
  return params.repetition_penalty != 1 || params.presence_penalty != 0 ||
         params.frequency_penalty != 0;
}

}  // namespace ingot::engine
