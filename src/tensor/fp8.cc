#include "tensor/fp8.h"

namespace ingot::tensor {

Float8E4M3 to_e4m3(float value) {
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr uint32_t kLargest = 0x43E00000;         // 448
  constexpr uint32_t kSmallestNormal = 0x3C800000;  // 2^-6
  constexpr uint32_t kRebias = 120u << 23;          // the exponent bias falls from 127 to 7

  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 24 & 0x80;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > kInfinity) return {0x7F};
  uint32_t small = 0;
  if (magnitude >= kLargest) {
    small = 0x7E;
  } else if (magnitude >= kSmallestNormal) {
    const uint32_t rebiased = magnitude - kRebias;
    small = (rebiased + 0x7FFFF + (rebiased >> 20 & 1)) >> 20;
  } else {
    // The spacing of floats at 2^14 is 2^-9, the step of e4m3 subnormals: the addition rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0x1p14f;
    small = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0x1p14f);
  }
  return {static_cast<uint8_t>(sign | small)};
}

}  // namespace ingot::tensor
