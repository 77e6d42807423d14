#pragma once

#include <cstddef>
#include <cstdint>

namespace ingot::kernels {

// Twelve sums of eight lanes.
inline constexpr int64_t kF32MacsPerRoundAvx2 = 12 * 8;
void multiply_f32_avx2(int64_t rounds);

// As MXFP4 weights meet int8 activations: of 32 values a lane, four vpmaddubsw summed in 16 bits
// and one vpmaddwd that widens them. Four such chains.
inline constexpr int64_t kInt8MacsPerRoundAvx2 = 4 * 4 * 32;
void multiply_int8_avx2(int64_t rounds);

void read_avx2(const std::byte* data, int64_t size_bytes);

}  // namespace ingot::kernels
