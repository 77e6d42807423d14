#pragma once

#include <bit>
#include <cstdint>

namespace ingot::tensor {

// 8-bit float e4m3 of the "fn" kind (Micikevicius et al. 2022): bias 7, subnormals in steps of
// 2^-9, no infinity, NaN only as 0x7F and 0xFF, largest value 448. Kept as its bits.
struct Float8E4M3 {
  uint8_t bits;
};

inline constexpr float kFloat8E4M3Max = 448.0f;

constexpr bool is_nan(Float8E4M3 value) { return (value.bits & 0x7F) == 0x7F; }

inline float to_f32(Float8E4M3 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x80) << 24;
  const uint32_t rest = value.bits & 0x7F;
  if (rest == 0x7F) return std::bit_cast<float>(sign | 0x7FC00000u);
  // Moving the exponent by multiplication makes subnormals right as well.
  const float magnitude = std::bit_cast<float>(rest << 20) * 0x1p120f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

// To nearest even; values beyond the largest, infinity included, become the largest with their
// sign, and NaN becomes 0x7F.
Float8E4M3 to_e4m3(float value);

}  // namespace ingot::tensor
