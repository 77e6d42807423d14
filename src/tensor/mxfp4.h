#pragma once

#include <bit>
#include <cstdint>

namespace ingot::tensor {

// The MXFP4 format (Open Compute Project, Microscaling Formats 1.0): blocks of 32 consecutive
// values of a row, each an e2m1 code of four bits, under one e8m0 scale byte. Two codes share a
// byte: the low nibble is the value of even index.
inline constexpr int64_t kMxfp4BlockValues = 32;

// Values of the 16 codes; bit 3 of a code is the sign.
inline constexpr float kE2M1Values[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                          -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

// Code `index` of a packed row.
constexpr uint8_t e2m1_code(const uint8_t* packed, int64_t index) {
  return static_cast<uint8_t>(packed[index / 2] >> (index % 2 * 4) & 0xF);
}

inline constexpr uint8_t kE8M0Nan = 255;

// 2^(byte - 127); byte 0 is an f32 subnormal and 255 is NaN.
constexpr float e8m0_to_f32(uint8_t byte) {
  if (byte == 0) return 0x1p-127f;
  if (byte == kE8M0Nan) return std::bit_cast<float>(0x7FC00000u);
  return std::bit_cast<float>(static_cast<uint32_t>(byte) << 23);
}

}  // namespace ingot::tensor
