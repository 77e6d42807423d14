#include "tensor/float16.h"

namespace ingot::tensor {

Float16 to_f16(float value) {
  constexpr uint32_t kInfinity = 0x7F800000;
  constexpr uint32_t kOverflow = 0x477FF000;        // 65520, from where the nearest is infinity
  constexpr uint32_t kSmallestNormal = 0x38800000;  // 2^-14
  constexpr uint32_t kRebias = 112u << 23;          // the exponent bias falls from 127 to 15

  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  uint32_t half = 0;
  if (magnitude > kInfinity) {  // NaN: the quiet bit keeps it one when the payload is cut
    half = 0x7E00 | (magnitude >> 13 & 0x3FF);
  } else if (magnitude >= kOverflow) {
    half = 0x7C00;
  } else if (magnitude >= kSmallestNormal) {
    const uint32_t rebiased = magnitude - kRebias;
    half = (rebiased + 0xFFF + (rebiased >> 13 & 1)) >> 13;
  } else {
    // The spacing of floats at 0.5 is 2^-24, the step of f16 subnormals: the addition rounds.
    const float sum = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(sum) - std::bit_cast<uint32_t>(0.5f);
  }
  return {static_cast<uint16_t>(sign | half)};
}

}  // namespace ingot::tensor
