#pragma once

#include <immintrin.h>

namespace ingot::kernels {
// Only for files that are compiled for AVX2. Without a name, so that none of this becomes a weak
// symbol that the linker might give to the rest of the program.
namespace {

using stored_bits = unsigned short;  // f16 and bf16 as stored

// Eight consecutive values of a stored type as f32, or one; exact.
struct F32Lanes {
  using Element = float;
  static __m256 load(const float* p) { return _mm256_loadu_ps(p); }
  static float one(float v) { return v; }
};
struct F16Lanes {
  using Element = stored_bits;
  static __m256 load(const stored_bits* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static float one(stored_bits v) { return _cvtsh_ss(v); }
};
struct BF16Lanes {
  using Element = stored_bits;
  static __m256 load(const stored_bits* p) {
    const __m256i wide =
        _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
    return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
  }
  static float one(stored_bits v) {
    return _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(v) << 16)));
  }
  // To nearest even; NaN stays NaN. The same bits as tensor::to_bf16.
  static __m128i rounded(__m256 values) {
    const __m256i bits = _mm256_castps_si256(values);
    const __m256i kept = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(kept, _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    const __m256i nearest = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    const __m256i quiet = _mm256_or_si256(kept, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(values, values, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(nearest, quiet, is_nan);
    return _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1));
  }
};

inline __m256 magnitude_of(__m256 v) {
  return _mm256_and_ps(v, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF)));
}

}  // namespace
}  // namespace ingot::kernels
