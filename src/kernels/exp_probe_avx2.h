#pragma once

#include <cstdint>

namespace ingot::kernels {

// exp_lanes and silu_lanes over `count` values, so that their test need not be compiled for AVX2.
// REQUIRES: count is a multiple of 8; the processor has AVX2 and FMA.
void exp_probe_avx2(const float* x, int64_t count, float* out);
void silu_probe_avx2(const float* x, int64_t count, float* out);

}  // namespace ingot::kernels
