#pragma once

#include <immintrin.h>

namespace ingot::kernels {
// Only for files that are compiled for AVX2. Without a name, so that none of this becomes a weak
// symbol that the linker might give to the rest of the program.
namespace {

// e^x of eight values, within 1 ulp wherever the result is normal, and subnormal results are kept.
// exp(-inf) is 0, what is too large becomes infinity, NaN stays NaN.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, and e^r = 1 + r (1 + r q(r)). q interpolates (e^r - 1 - r) /
// r^2 at five Chebyshev nodes, which leaves 1e-8 of e^r. ln 2 is taken in two parts; n times the
// first is exact.
inline __m256 exp_lanes(__m256 x) {
  // Beyond these bounds the result is 0 or infinity. The order of operands lets NaN through.
  const __m256 bounded = _mm256_min_ps(_mm256_set1_ps(89), _mm256_max_ps(_mm256_set1_ps(-104), x));
  const __m256i n = _mm256_cvtps_epi32(_mm256_mul_ps(bounded, _mm256_set1_ps(0x1.715476p+0f)));
  const __m256 multiple = _mm256_cvtepi32_ps(n);
  __m256 r = _mm256_fnmadd_ps(multiple, _mm256_set1_ps(0x1.62e4p-1f), bounded);
  r = _mm256_fnmadd_ps(multiple, _mm256_set1_ps(0x1.7f7d1cp-20f), r);
  __m256 q = _mm256_set1_ps(0.00139261910562f);
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0.00836318503153f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0.0416665545723f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0.166665769538f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(0.5f));
  q = _mm256_fmadd_ps(q, r, _mm256_set1_ps(1));
  const __m256 power = _mm256_fmadd_ps(q, r, _mm256_set1_ps(1));
  // 2^n in two factors: n reaches from -150 to 128, beyond what one exponent can hold.
  const __m256i half = _mm256_srai_epi32(n, 1);
  const auto power_of_two = [](__m256i exponent) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(exponent, _mm256_set1_epi32(127)), 23));
  };
  return _mm256_mul_ps(_mm256_mul_ps(power, power_of_two(half)),
                       power_of_two(_mm256_sub_epi32(n, half)));
}

// x / (1 + e^-x)
inline __m256 silu_lanes(__m256 x) {
  const __m256 negative = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
  return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1), exp_lanes(negative)));
}

}  // namespace
}  // namespace ingot::kernels
