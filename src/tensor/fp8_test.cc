#include "tensor/fp8.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::tensor {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What the format means, by its definition; NaN for the two codes that are none.
double value_of(uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 3 & 15);
  const int mantissa = static_cast<int>(bits & 7);
  const double sign = (bits & 0x80) != 0 ? -1 : 1;
  if (exponent == 15 && mantissa == 7) return std::numeric_limits<double>::quiet_NaN();
  if (exponent == 0) return sign * std::ldexp(mantissa, -9);
  return sign * std::ldexp(8 + mantissa, exponent - 10);
}

// The nearest of all 127 magnitudes, on ties the even one; beyond the largest the largest.
uint8_t nearest(float value) {
  const double magnitude = std::min(std::fabs(static_cast<double>(value)), 448.0);
  uint32_t best = 0;
  for (uint32_t bits = 1; bits < 0x7F; ++bits) {
    const double distance = std::fabs(value_of(bits) - magnitude);
    const double least = std::fabs(value_of(best) - magnitude);
    if (distance < least || (distance == least && bits % 2 == 0)) best = bits;
  }
  return static_cast<uint8_t>(best | (std::signbit(value) ? 0x80u : 0));
}

void expect_nearest(float value) {
  ASSERT_EQ(to_e4m3(value).bits, nearest(value)) << value;
  ASSERT_EQ(to_e4m3(-value).bits, nearest(-value)) << value;
}

TEST(Float8E4M3, EveryByteHasItsValue) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const Float8E4M3 value{static_cast<uint8_t>(bits)};
    const double want = value_of(bits);
    EXPECT_EQ(is_nan(value), std::isnan(want)) << bits;
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(to_f32(value))) << bits;
    } else {
      EXPECT_EQ(static_cast<double>(to_f32(value)), want) << bits;
      EXPECT_EQ(std::signbit(to_f32(value)), std::signbit(want)) << bits;
    }
  }
}

TEST(Float8E4M3, EveryByteComesBack) {
  for (uint32_t bits = 0; bits < 256; ++bits) {
    const Float8E4M3 value{static_cast<uint8_t>(bits)};
    EXPECT_EQ(to_e4m3(to_f32(value)).bits, is_nan(value) ? 0x7F : bits) << bits;
  }
}

// At every value: the midpoint to the next one and its two neighbours, both signs.
TEST(Float8E4M3, RoundsToNearestEvenAtEveryMidpoint) {
  for (uint32_t bits = 0; bits < 0x7F; ++bits) {
    const double next = bits == 0x7E ? 480 : value_of(bits + 1);
    const auto tie = static_cast<float>((value_of(bits) + next) / 2);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)}) {
      expect_nearest(value);
    }
  }
}

TEST(Float8E4M3, RoundsRandomFloats) {
  const base::RandomStream stream = base::random_stream(8, "floats");
  for (uint64_t i = 0; i < 20'000; ++i) {
    const auto anywhere = std::bit_cast<float>(static_cast<uint32_t>(stream.word(2 * i)));
    if (!std::isnan(anywhere)) expect_nearest(anywhere);
    // Most floats lie far outside the format; these lie inside.
    expect_nearest(
        static_cast<float>(std::ldexp(stream.normal(2 * i + 1), static_cast<int>(i % 20) - 11)));
  }
}

TEST(Float8E4M3, EdgesByHand) {
  EXPECT_EQ(to_e4m3(0.0f).bits, 0x00);
  EXPECT_EQ(to_e4m3(-0.0f).bits, 0x80);
  EXPECT_EQ(to_e4m3(1.0f).bits, 0x38);
  EXPECT_EQ(to_e4m3(448.0f).bits, 0x7E);
  EXPECT_EQ(to_e4m3(1e30f).bits, 0x7E);
  EXPECT_EQ(to_e4m3(-kInfinity).bits, 0xFE);
  EXPECT_EQ(to_e4m3(0x1p-9f).bits, 0x01);
  EXPECT_EQ(to_e4m3(0x1p-10f).bits, 0x00);  // a tie goes to even
  EXPECT_EQ(to_e4m3(0x1.000002p-10f).bits, 0x01);
  EXPECT_EQ(to_e4m3(std::bit_cast<float>(0x7F800001u)).bits, 0x7F);
  EXPECT_EQ(to_e4m3(std::bit_cast<float>(0xFFC00000u)).bits, 0x7F);
}

}  // namespace
}  // namespace ingot::tensor
