#include "engine/sampler.h"

#include <cmath>
#include <limits>
#include <map>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::engine {
namespace {

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(sample(std::vector<float>{-5, -1, -1}, {.temperature = 0, .seed = 9}, 4), 1);
}

TEST(Sampler, LogSumExpNeitherOverflowsNorUnderflows) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{0, 0, 0, 0}), std::log(4.0), 1e-12);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{3e38f, 0}), 3e38, 1e32);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-1e30f, -1e30f}), -1e30, 1e24);
}

TEST(Sampler, DrawsFollowTheDistribution) {
  const std::vector<float> logits = {0.0f, 1.0f, -1.0f, 2.0f};
  constexpr int kDraws = 20000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    std::map<int32_t, int> counts;
    for (int i = 0; i < kDraws; ++i) {
      ++counts[sample(logits, {.temperature = temperature, .seed = 11}, i)];
    }
    double total = 0;
    for (const float logit : logits) total += std::exp(logit / temperature);
    for (int32_t token = 0; token < 4; ++token) {
      const double p = std::exp(logits[static_cast<size_t>(token)] / temperature) / total;
      // Five standard deviations of a binomial count.
      EXPECT_NEAR(counts[token], kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p)));
    }
  }
}

TEST(Sampler, DependsOnSeedAndPositionAlone) {
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i % 7) * 0.1f;
  std::vector<int32_t> first;
  std::vector<int32_t> again;
  std::vector<int32_t> other_seed;
  for (int64_t i = 0; i < 40; ++i) {
    first.push_back(sample(logits, {.temperature = 1, .seed = 1}, i));
    other_seed.push_back(sample(logits, {.temperature = 1, .seed = 2}, i));
  }
  for (int64_t i = 40; i-- > 0;) {
    again.insert(again.begin(), sample(logits, {.temperature = 1, .seed = 1}, i));
  }
  EXPECT_EQ(again, first);
  EXPECT_NE(other_seed, first);
}

TEST(Sampler, ATinyTemperatureIsGreedy) {
  const std::vector<float> logits = {0.0f, 0.5f, 0.25f};
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(sample(logits, {.temperature = 1e-6, .seed = 3}, i), 1);
  }
}

TEST(Sampler, TokensOfNoProbabilityAreNeverDrawn) {
  const float never = -std::numeric_limits<float>::max();
  const std::vector<float> logits = {never, 0.0f, never, 0.0f, never};
  for (int64_t i = 0; i < 200; ++i) {
    EXPECT_EQ(sample(logits, {.temperature = 1, .seed = 4}, i) % 2, 1);
  }
}

}  // namespace
}  // namespace ingot::engine
