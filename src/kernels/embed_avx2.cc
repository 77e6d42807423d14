#include <immintrin.h>

#include "kernels/embed.h"
#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

template <typename T>
void widen(const stored_bits* values, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) _mm256_storeu_ps(out + i, T::load(values + i));
  for (; i < count; ++i) out[i] = T::one(values[i]);
}

}  // namespace

void widen_f16_avx2(const tensor::Float16* values, int64_t count, float* out) {
  widen<F16Lanes>(&values->bits, count, out);
}

void widen_bf16_avx2(const tensor::BFloat16* values, int64_t count, float* out) {
  widen<BF16Lanes>(&values->bits, count, out);
}

void add_avx2(float* x, const float* y, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(x + i, _mm256_add_ps(_mm256_loadu_ps(x + i), _mm256_loadu_ps(y + i)));
  }
  for (; i < count; ++i) x[i] += y[i];
}

}  // namespace ingot::kernels
