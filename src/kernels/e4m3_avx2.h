#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
// Only for files that are compiled for AVX2, as lanes_avx2.h.
namespace {

struct RoundedE4M3 {
  __m256 magnitudes;
  __m256i codes;  // in the low byte, without the sign
};

// Magnitudes rounded to the nearest of e4m3's, to even; what is beyond the largest becomes it.
//
// Steps are 2^-9 below 2^-6 and an eighth of the binade above. Adding the power of two whose last
// bit is worth a step rounds to nearest even, and leaves how often the step fits in the sum's last
// bits; each binade above the first has a code of eight more, which the exponent supplies, three
// places above. 1128 is what its bias comes to.
inline RoundedE4M3 round_to_e4m3(__m256 quotients) {
  const __m256 clamped = _mm256_min_ps(magnitude_of(quotients), _mm256_set1_ps(448));
  const __m256i binade =
      _mm256_and_si256(_mm256_castps_si256(_mm256_max_ps(clamped, _mm256_set1_ps(0x1p-6f))),
                       _mm256_set1_epi32(0x7F800000));
  const __m256 offset = _mm256_castsi256_ps(_mm256_add_epi32(binade, _mm256_set1_epi32(20 << 23)));
  const __m256 sum = _mm256_add_ps(clamped, offset);
  const __m256i bits = _mm256_castps_si256(sum);
  const __m256i codes = _mm256_sub_epi32(_mm256_add_epi32(bits, _mm256_srli_epi32(bits, 20)),
                                         _mm256_set1_epi32(1128));
  return {_mm256_sub_ps(sum, offset), codes};
}

// The low byte of each of eight codes, with the sign of `values`.
inline uint64_t pack_codes(__m256i codes, __m256 values) {
  const __m256i signs =
      _mm256_and_si256(_mm256_srli_epi32(_mm256_castps_si256(values), 24), _mm256_set1_epi32(0x80));
  const __m256i signed_codes =
      _mm256_or_si256(_mm256_and_si256(codes, _mm256_set1_epi32(0x7F)), signs);
  const __m128i words = _mm_packus_epi32(_mm256_castsi256_si128(signed_codes),
                                         _mm256_extracti128_si256(signed_codes, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_packus_epi16(words, words)));
}

}  // namespace
}  // namespace ingot::kernels
