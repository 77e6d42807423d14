#pragma once

#include <bit>
#include <cstdint>

namespace ingot::tensor {

// 16-bit floats are kept as their bits; these convert, exactly upward and to nearest even downward.

// Upper half of an f32: 8 exponent bits, 7 mantissa bits.
struct BFloat16 {
  uint16_t bits;
};

// IEEE 754 binary16.
struct Float16 {
  uint16_t bits;
};

inline float to_f32(BFloat16 value) {
  return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16);
}

inline float to_f32(Float16 value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000) << 16;
  const uint32_t rest = value.bits & 0x7FFF;
  if (rest >= 0x7C00) {  // infinity and NaN keep their payload
    return std::bit_cast<float>(sign | 0x7F800000u | (rest & 0x3FF) << 13);
  }
  // Moving the exponent by multiplication makes subnormals right as well.
  const float magnitude = std::bit_cast<float>(rest << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
}

inline float to_f32(float value) { return value; }

// NaN stays NaN, and values beyond the largest finite one become infinity.
inline BFloat16 to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return {static_cast<uint16_t>(bits >> 16 | 0x40)};
  return {static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)};
}

Float16 to_f16(float value);

}  // namespace ingot::tensor
