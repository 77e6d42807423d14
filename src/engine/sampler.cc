#include "engine/sampler.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/random.h"

namespace ingot::engine {

int32_t argmax(std::span<const float> values) {
  CHECK(!values.empty());
  return static_cast<int32_t>(std::ranges::max_element(values) - values.begin());
}

double log_sum_exp(std::span<const float> values) {
  const double max = *std::ranges::max_element(values);
  double sum = 0;
  for (const float value : values) sum += std::exp(static_cast<double>(value) - max);
  return max + std::log(sum);
}

base::Status check_finite(std::span<const float> logits, std::string_view where) {
  if (std::ranges::all_of(logits, [](float v) { return std::isfinite(v); })) return {};
  return base::error(
      "the logits {} are not finite; the weights overflow in this arithmetic, try "
      "--activations f32",
      where);
}

int32_t sample(std::span<const float> logits, const SamplingParams& params,
               int64_t output_position) {
  const int32_t best = argmax(logits);
  if (params.temperature == 0) return best;
  const double max = logits[static_cast<size_t>(best)];
  const auto weight = [&](float logit) {
    return std::exp((static_cast<double>(logit) - max) / params.temperature);
  };
  double total = 0;
  for (const float logit : logits) total += weight(logit);
  const base::RandomStream stream = base::random_stream(params.seed, "sample");
  const double target = stream.uniform(static_cast<uint64_t>(output_position)) * total;
  double sum = 0;
  for (size_t token = 0; token < logits.size(); ++token) {
    sum += weight(logits[token]);
    if (sum > target) return static_cast<int32_t>(token);
  }
  return best;  // only when rounding kept the sum below the target
}

}  // namespace ingot::engine
