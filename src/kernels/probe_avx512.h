#pragma once

#include <cstdint>

namespace ingot::kernels {

inline constexpr int64_t kF32MacsPerRoundAvx512 = 24 * 16;
void multiply_f32_avx512(int64_t rounds);

inline constexpr int64_t kInt8MacsPerRoundAvx512 = 24 * 64;
void multiply_int8_avx512(int64_t rounds);

// Whether the processor has AVX512_BF16, which is not of the level. What follows needs it.
bool has_bf16_avx512();
inline constexpr int64_t kBF16MacsPerRoundAvx512 = 24 * 32;
void multiply_bf16_avx512(int64_t rounds);

}  // namespace ingot::kernels
