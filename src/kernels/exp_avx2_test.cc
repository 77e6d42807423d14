#if defined(__x86_64__)

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/exp_probe_avx2.h"
#include "kernels/target.h"

namespace ingot::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

using Probe = void (*)(const float* x, int64_t count, float* out);

std::vector<float> through(Probe probe, std::vector<float> x) {
  const size_t count = x.size();
  x.resize((count + 7) / 8 * 8);
  std::vector<float> out(x.size());
  probe(x.data(), static_cast<int64_t>(x.size()), out.data());
  out.resize(count);
  return out;
}

// Every `step`-th float between two of the same sign.
std::vector<float> floats_between(float first, float last, uint32_t step) {
  std::vector<float> values;
  uint32_t bits = std::bit_cast<uint32_t>(first);
  const uint32_t end = std::bit_cast<uint32_t>(last);
  for (; bits <= end; bits += step) values.push_back(std::bit_cast<float>(bits));
  return values;
}

// The distance from `value` to its neighbour above, in which an error is counted.
double ulp_of(double value) {
  const int exponent = std::max(std::ilogb(value), -126);
  return std::ldexp(1.0, exponent - 23);
}

class ExpAvx2 : public testing::Test {
 protected:
  void SetUp() override {
    if (detect_target() < Target::kAvx2) GTEST_SKIP() << "no AVX2 here";
  }
};

TEST_F(ExpAvx2, IsWithinAnUlpOfDouble) {
  double worst = 0;
  for (const auto& x :
       {floats_between(0.0f, 88.7228f, 1009), floats_between(-0.0f, -87.3f, 1009)}) {
    const auto got = through(exp_probe_avx2, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = std::exp(static_cast<double>(x[i]));
      const double error = std::abs(got[i] - want) / ulp_of(want);
      worst = std::max(worst, error);
      ASSERT_LE(error, 1.0) << x[i];
    }
  }
  RecordProperty("worst_ulp", std::to_string(worst));
}

TEST_F(ExpAvx2, KeepsSubnormalResults) {
  const auto x = floats_between(-87.3f, -105.0f, 101);
  const auto got = through(exp_probe_avx2, x);
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(got[i], std::exp(static_cast<double>(x[i])), 0x1p-149) << x[i];
  }
}

TEST_F(ExpAvx2, Extremes) {
  const float largest = std::numeric_limits<float>::max();
  const auto got =
      through(exp_probe_avx2, {0.0f, -0.0f, -kInfinity, kInfinity, -largest, largest, 88.73f, 89.5f,
                               -104.5f, std::nanf(""), -std::nanf(""), 0x1p-149f});
  const std::vector<float> want = {1, 1, 0, kInfinity, 0, kInfinity, kInfinity, kInfinity, 0};
  for (size_t i = 0; i < want.size(); ++i) EXPECT_EQ(got[i], want[i]) << i;
  EXPECT_TRUE(std::isnan(got[9]) && std::isnan(got[10]));
  EXPECT_EQ(got[11], 1.0f);
}

TEST_F(ExpAvx2, SiluIsCloseToDoubleAndHasTheSameLimits) {
  for (const auto& x :
       {floats_between(0x1p-30f, 200.0f, 4001), floats_between(-0x1p-30f, -85.0f, 4001)}) {
    const auto got = through(silu_probe_avx2, x);
    for (size_t i = 0; i < x.size(); ++i) {
      const double want = x[i] / (1 + std::exp(-static_cast<double>(x[i])));
      ASSERT_NEAR(got[i], want, std::abs(want) * 2.5e-7) << x[i];
    }
  }
  for (const float x : {kInfinity, -kInfinity, -200.0f, 0.0f, std::nanf("")}) {
    const float got = through(silu_probe_avx2, {x})[0];
    const float want = x / (1 + std::exp(-x));
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << x;
    } else {
      EXPECT_EQ(got, want) << x;
    }
  }
}

}  // namespace
}  // namespace ingot::kernels

#endif
