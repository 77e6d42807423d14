#include "kernels/exp_probe_avx2.h"

#include "kernels/exp_avx2.h"

namespace ingot::kernels {

void exp_probe_avx2(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 8) {
    _mm256_storeu_ps(out + i, exp_lanes(_mm256_loadu_ps(x + i)));
  }
}

void silu_probe_avx2(const float* x, int64_t count, float* out) {
  for (int64_t i = 0; i < count; i += 8) {
    _mm256_storeu_ps(out + i, silu_lanes(_mm256_loadu_ps(x + i)));
  }
}

}  // namespace ingot::kernels
