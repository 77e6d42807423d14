#include "model/rope_parameters.h"

#include <cmath>

#include <gtest/gtest.h>

namespace ingot::model {
namespace {

ModelConfig config_with(int64_t dim, double theta) {
  ModelConfig config;
  config.qk_rope_head_dim = dim;
  config.rope_theta = theta;
  return config;
}

TEST(RopeParameters, FrequenciesArePowersOfTheta) {
  const RopeParameters rope = rope_parameters(config_with(64, 8e6));
  ASSERT_EQ(rope.frequencies.size(), 32u);
  EXPECT_EQ(rope.frequencies[0], 1.0);
  EXPECT_NEAR(rope.frequencies[31], std::pow(8e6, -62.0 / 64), 1e-18);
  EXPECT_EQ(rope.amplitude, 1);
  EXPECT_EQ(rope.softmax_factor, 1);
}

// Of the published DeepSeek-V3 config: pairs 0 to 10 keep their frequency, those from 23 on turn 40
// times slower.
TEST(RopeParameters, YarnStretchesTheSlowPairsOnly) {
  ModelConfig config = config_with(64, 1e4);
  config.yarn = Yarn{.factor = 40,
                     .beta_fast = 32,
                     .beta_slow = 1,
                     .mscale = 1,
                     .mscale_all_dim = 1,
                     .original_max_position_embeddings = 4096};
  const RopeParameters plain = rope_parameters(config_with(64, 1e4));
  const RopeParameters yarn = rope_parameters(config);
  for (size_t j = 0; j < 32; ++j) {
    const double ratio = yarn.frequencies[j] / plain.frequencies[j];
    if (j <= 10) {
      EXPECT_DOUBLE_EQ(ratio, 1) << j;
    } else if (j < 23) {
      EXPECT_TRUE(1.0 / 40 < ratio && ratio < 1) << j;
    } else {
      EXPECT_NEAR(ratio, 1.0 / 40, 1e-12) << j;
    }
  }
  EXPECT_EQ(yarn.amplitude, 1);
  const double mscale = 0.1 * std::log(40.0) + 1;
  EXPECT_DOUBLE_EQ(yarn.softmax_factor, mscale * mscale);
}

TEST(RopeParameters, WithoutMscaleAllDimTheCosinesGrow) {
  ModelConfig config = config_with(16, 1e4);
  config.yarn = Yarn{.factor = 4, .mscale = 0, .original_max_position_embeddings = 256};
  const RopeParameters rope = rope_parameters(config);
  EXPECT_DOUBLE_EQ(rope.amplitude, 0.1 * std::log(4.0) + 1);
  EXPECT_EQ(rope.softmax_factor, 1);
}

}  // namespace
}  // namespace ingot::model
