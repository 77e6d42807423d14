#include <immintrin.h>

#include "kernels/rope.h"

namespace ingot::kernels {
namespace {

// Multiplied and added as the lanes do it, so that the style changes no bit.
inline void rotate_pair(float& first, float& second, float cosine, float sine) {
  const float a = first;
  const float b = second;
  first = __builtin_fmaf(a, cosine, -(b * sine));
  second = __builtin_fmaf(b, cosine, a * sine);
}

void rotate_interleaved(float* values, const float* cosines, const float* sines, int64_t half) {
  const __m256i twice_each = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
  const auto doubled = [twice_each](const float* p) {
    return _mm256_permutevar8x32_ps(_mm256_castps128_ps256(_mm_loadu_ps(p)), twice_each);
  };
  int64_t j = 0;
  for (; j + 4 <= half; j += 4) {
    const __m256 pairs = _mm256_loadu_ps(values + 2 * j);
    const __m256 swapped = _mm256_permute_ps(pairs, 0b10110001);
    const __m256 crossed = _mm256_mul_ps(swapped, doubled(sines + j));
    _mm256_storeu_ps(values + 2 * j, _mm256_fmaddsub_ps(pairs, doubled(cosines + j), crossed));
  }
  for (; j < half; ++j) rotate_pair(values[2 * j], values[2 * j + 1], cosines[j], sines[j]);
}

void rotate_halves(float* values, const float* cosines, const float* sines, int64_t half) {
  int64_t j = 0;
  for (; j + 8 <= half; j += 8) {
    const __m256 cosine = _mm256_loadu_ps(cosines + j);
    const __m256 sine = _mm256_loadu_ps(sines + j);
    const __m256 a = _mm256_loadu_ps(values + j);
    const __m256 b = _mm256_loadu_ps(values + half + j);
    _mm256_storeu_ps(values + j, _mm256_fmsub_ps(a, cosine, _mm256_mul_ps(b, sine)));
    _mm256_storeu_ps(values + half + j, _mm256_fmadd_ps(b, cosine, _mm256_mul_ps(a, sine)));
  }
  for (; j < half; ++j) rotate_pair(values[j], values[half + j], cosines[j], sines[j]);
}

}  // namespace

void rotate_row_avx2(float* values, const float* table, int64_t dim, RopeStyle style) {
  const int64_t half = dim / 2;
  if (style == RopeStyle::kInterleaved) {
    rotate_interleaved(values, table, table + half, half);
  } else {
    rotate_halves(values, table, table + half, half);
  }
}

}  // namespace ingot::kernels
