#include "model/rope_parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace ingot::model {
namespace {

// The pair, as a fraction, that makes `turns` turns within the original context.
double pair_of_turns(double turns, const ModelConfig& config) {
  const auto positions = static_cast<double>(config.yarn->original_max_position_embeddings);
  const auto dim = static_cast<double>(config.qk_rope_head_dim);
  return dim * std::log(positions / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(config.rope_theta));
}

double yarn_mscale(double factor, double mscale) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * std::log(factor) + 1.0;
}

}  // namespace

RopeParameters rope_parameters(const ModelConfig& config) {
  RopeParameters rope;
  const int64_t dim = config.qk_rope_head_dim;
  for (int64_t j = 0; j < dim / 2; ++j) {
    const double exponent = -2.0 * static_cast<double>(j) / static_cast<double>(dim);
    rope.frequencies.push_back(std::pow(config.rope_theta, exponent));
  }
  if (!config.yarn) return rope;
  const Yarn& yarn = *config.yarn;
  const double last = static_cast<double>(dim) - 1;
  const double low = std::max(0.0, std::floor(pair_of_turns(yarn.beta_fast, config)));
  double high = std::min(last, std::ceil(pair_of_turns(yarn.beta_slow, config)));
  if (high == low) high += 0.001;  // as published, so that the ramp has a slope
  for (int64_t j = 0; j < dim / 2; ++j) {
    const double ramp = std::clamp((static_cast<double>(j) - low) / (high - low), 0.0, 1.0);
    double& frequency = rope.frequencies[static_cast<size_t>(j)];
    frequency = frequency * (1 - ramp) + frequency / yarn.factor * ramp;
  }
  if (yarn.mscale != 0 && yarn.mscale_all_dim != 0) {
    rope.amplitude =
        yarn_mscale(yarn.factor, yarn.mscale) / yarn_mscale(yarn.factor, yarn.mscale_all_dim);
  } else {
    rope.amplitude = yarn_mscale(yarn.factor, 1);
  }
  if (yarn.mscale_all_dim != 0) {
    const double mscale = yarn_mscale(yarn.factor, yarn.mscale_all_dim);
    rope.softmax_factor = mscale * mscale;
  }
  return rope;
}

}  // namespace ingot::model
