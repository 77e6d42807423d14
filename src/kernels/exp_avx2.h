#pragma once

#include <immintrin.h>

namespace ingot::kernels {
// Only for files that are compiled for AVX2; without a name, as in lanes_avx2.h.
namespace {

// exp of eight numbers to about one unit in the last place. What is below the smallest normal
// number becomes 0, what is too large infinity, and NaN stays NaN. exp(x) = 2^n exp(r) with
// |r| <= ln 2 / 2, and exp(r) is a polynomial (Cephes, Moshier 1992).
inline __m256 exp_lanes(__m256 x) {
  const __m256 low = _mm256_set1_ps(-87.33654f);
  const __m256 high = _mm256_set1_ps(88.72284f);
  const __m256 inside = _mm256_min_ps(_mm256_max_ps(x, low), high);
  const __m256 n = _mm256_round_ps(_mm256_mul_ps(inside, _mm256_set1_ps(1.44269504088896341f)),
                                   _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(0.693359375f), inside);
  r = _mm256_fnmadd_ps(n, _mm256_set1_ps(-2.12194440e-4f), r);
  __m256 p = _mm256_set1_ps(1.9875691500e-4f);
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.3981999507e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(8.3334519073e-3f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(4.1665795894e-2f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.6666665459e-1f));
  p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(5.0000001201e-1f));
  p = _mm256_add_ps(_mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r), _mm256_set1_ps(1.0f));
  // In two steps, because 2^128 is no float.
  const __m256i whole = _mm256_cvtps_epi32(n);
  const __m256i half = _mm256_srai_epi32(whole, 1);
  const auto power = [](__m256i exponent) __attribute__((always_inline)) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
  };
  p = _mm256_mul_ps(_mm256_mul_ps(p, power(half)), power(_mm256_sub_epi32(whole, half)));
  p = _mm256_andnot_ps(_mm256_cmp_ps(x, low, _CMP_LT_OQ), p);
  const __m256 infinity = _mm256_castsi256_ps(_mm256_set1_epi32(0x7F800000));
  p = _mm256_blendv_ps(p, infinity, _mm256_cmp_ps(x, high, _CMP_GT_OQ));
  return _mm256_blendv_ps(p, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

// x / (1 + exp(-x))
inline __m256 silu_lanes(__m256 x) {
  const __m256 one = _mm256_set1_ps(1.0f);
  const __m256 minus_x = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
  return _mm256_div_ps(x, _mm256_add_ps(one, exp_lanes(minus_x)));
}

}  // namespace
}  // namespace ingot::kernels
