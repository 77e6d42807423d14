#pragma once

#include <vector>

#include "model/model_config.h"

namespace ingot::model {

// What a config's rope amounts to.
struct RopeParameters {
  std::vector<double> frequencies;  // radians a position, one a rotated pair
  double amplitude = 1;             // factor of the cosines and sines
  double softmax_factor = 1;        // factor of the attention's scores
};

// theta^(-2j / dim) for pair j; with YaRN (Peng et al. 2023) stretched for pairs that turn slowly,
// as the published DeepSeek models do: pairs that make more than beta_fast turns within the
// original context keep their frequency, those under beta_slow have it divided by the factor, with
// a linear ramp between.
RopeParameters rope_parameters(const ModelConfig& config);

}  // namespace ingot::model
