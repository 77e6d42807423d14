#include "tensor/float16.h"

#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::tensor {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What an IEEE format with these field widths means, by its definition.
double value_of(uint32_t bits, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits & ((1u << exponent_bits) - 1));
  const auto mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1));
  const double sign = (bits >> (exponent_bits + mantissa_bits) & 1) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) {
    return mantissa == 0 ? sign * HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

// Bits of the nearest value with these widths, even on ties, found by dividing by the spacing.
uint32_t nearest(float value, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
  const uint32_t infinity = ((1u << exponent_bits) - 1) << mantissa_bits;
  const double magnitude = std::fabs(static_cast<double>(value));
  if (magnitude == 0) return sign;
  if (std::isinf(magnitude)) return sign | infinity;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const double steps = std::nearbyint(std::ldexp(magnitude, mantissa_bits - exponent));
  // A subnormal that rounds up to a normal, and a normal that rounds up to the next power of two,
  // carry into the exponent by themselves.
  const int64_t bits =
      static_cast<int64_t>(steps) + (int64_t{exponent + bias - 1} << mantissa_bits);
  return sign | static_cast<uint32_t>(std::min<int64_t>(bits, infinity));
}

bool same(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

TEST(Float16, EveryBitPatternHasItsValue) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    ASSERT_TRUE(same(static_cast<double>(to_f32(Float16{half})), value_of(bits, 5, 10))) << bits;
    ASSERT_TRUE(same(static_cast<double>(to_f32(BFloat16{half})), value_of(bits, 8, 7))) << bits;
  }
}

TEST(Float16, EveryBitPatternComesBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const bool f16_is_nan = (bits & 0x7FFF) > 0x7C00;
    const bool bf16_is_nan = (bits & 0x7FFF) > 0x7F80;
    // A NaN keeps sign and payload and becomes quiet.
    ASSERT_EQ(to_f16(to_f32(Float16{half})).bits, bits | (f16_is_nan ? 0x200u : 0)) << bits;
    ASSERT_EQ(to_bf16(to_f32(BFloat16{half})).bits, bits | (bf16_is_nan ? 0x40u : 0)) << bits;
  }
}

void expect_nearest(float value) {
  ASSERT_EQ(to_f16(value).bits, nearest(value, 5, 10)) << value;
  ASSERT_EQ(to_bf16(value).bits, nearest(value, 8, 7)) << value;
}

// At every finite value: the midpoint to the next one and its two neighbours, both signs.
TEST(Float16, RoundsToNearestEvenAtEveryMidpoint) {
  for (uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const double middle =
        (value_of(bits, 5, 10) + (bits == 0x7BFF ? 65536 : value_of(bits + 1, 5, 10))) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)}) {
      expect_nearest(value);
      expect_nearest(-value);
    }
  }
  for (uint32_t bits = 0; bits < 0x7F80; ++bits) {
    const auto tie = std::bit_cast<float>(bits << 16 | 0x8000);
    for (const float value : {tie, std::nextafter(tie, 0.0f), std::nextafter(tie, kInfinity)}) {
      expect_nearest(value);
      expect_nearest(-value);
    }
  }
}

TEST(Float16, RoundsRandomFloats) {
  const base::RandomStream stream = base::random_stream(16, "floats");
  for (uint64_t i = 0; i < 500'000; ++i) {
    const auto bits = static_cast<uint32_t>(stream.word(i));
    const auto value = std::bit_cast<float>(bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(to_f32(to_f16(value)))) << bits;
      ASSERT_TRUE(std::isnan(to_f32(to_bf16(value)))) << bits;
    } else {
      expect_nearest(value);
    }
  }
}

TEST(Float16, EdgesByHand) {
  EXPECT_EQ(to_f16(0.0f).bits, 0x0000);
  EXPECT_EQ(to_f16(-0.0f).bits, 0x8000);
  EXPECT_EQ(to_f16(1.0f).bits, 0x3C00);
  EXPECT_EQ(to_f16(65504.0f).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65519.996f).bits, 0x7BFF);
  EXPECT_EQ(to_f16(65520.0f).bits, 0x7C00);
  EXPECT_EQ(to_f16(-kInfinity).bits, 0xFC00);
  EXPECT_EQ(to_f16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(to_f16(0x1p-25f).bits, 0x0000);  // a tie goes to even
  EXPECT_EQ(to_f16(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(to_f16(0x1.FFFp-15f).bits, 0x0400);    // the largest subnormal's upper tie
  EXPECT_EQ(to_bf16(3.4028234e38f).bits, 0x7F80);  // the largest float rounds to infinity
  EXPECT_EQ(to_bf16(1.00390625f).bits, 0x3F80);    // a tie goes to even
  // A NaN whose payload lies in the bits that are cut.
  EXPECT_EQ(to_f16(std::bit_cast<float>(0x7F800001u)).bits, 0x7E00);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0xFF800001u)).bits, 0xFFC0);
}

}  // namespace
}  // namespace ingot::tensor
