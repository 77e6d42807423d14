#pragma once

#include <immintrin.h>

#include "kernels/activations.h"
#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
// Writers of 32 consecutive activations, a type each; without a name, as in lanes_avx2.h. They give
// the same bytes as the reference of activations.h.
namespace {

struct F32Encoder {
  static constexpr int64_t kBlockBytes = 128;
  static void store(const __m256 (&v)[4], std::byte* out) {
    for (int i = 0; i < 4; ++i) _mm256_storeu_ps(reinterpret_cast<float*>(out) + i * 8, v[i]);
  }
};

struct BF16Encoder {
  static constexpr int64_t kBlockBytes = 64;
  static void store(const __m256 (&v)[4], std::byte* out) {
    for (int i = 0; i < 4; ++i) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out) + i, BF16Lanes::rounded(v[i]));
    }
  }
};

struct Int8Encoder {
  static constexpr int64_t kBlockBytes = sizeof(Int8Block);
  static void store(const __m256 (&v)[4], std::byte* out) {
    auto& block = *reinterpret_cast<Int8Block*>(out);
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256i largest = _mm256_setzero_si256();
    for (const __m256& lanes : v) {
      // As integers, so that NaN and infinity are the largest of all.
      largest = _mm256_max_epu32(largest, _mm256_castps_si256(_mm256_andnot_ps(sign, lanes)));
    }
    const auto bits = static_cast<uint32_t>(max_lane(largest));
    const bool finite = bits < 0x7F800000u;
    const float scale =
        _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(bits)))) / 127;
    const bool encodes = finite && scale > 0;
    block.scale = finite ? scale : __builtin_nanf("");
    __m256i steps[4];
    for (int i = 0; i < 4; ++i) steps[i] = encodes ? to_steps(v[i], scale) : _mm256_setzero_si256();
    const __m256i words = _mm256_packs_epi16(_mm256_packs_epi32(steps[0], steps[1]),
                                             _mm256_packs_epi32(steps[2], steps[3]));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(block.values),
                        _mm256_permutevar8x32_epi32(words, order));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(steps[0], steps[1]),
                                         _mm256_add_epi32(steps[2], steps[3]));
    block.excess = 12 * sum_lanes(sum);
  }

 private:
  static __m256i to_steps(__m256 v, float scale) {
    const __m256 steps = _mm256_round_ps(_mm256_div_ps(v, _mm256_set1_ps(scale)),
                                         _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    // The clamp matters where the scale is subnormal and thus far from exact.
    const __m256 bound = _mm256_set1_ps(127);
    const __m256 lowest = _mm256_set1_ps(-127);
    return _mm256_cvtps_epi32(_mm256_max_ps(_mm256_min_ps(steps, bound), lowest));
  }
  static int max_lane(__m256i v) {
    __m128i m = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, 0x4E));
    return _mm_cvtsi128_si32(_mm_max_epu32(m, _mm_shuffle_epi32(m, 0xB1)));
  }
  static int sum_lanes(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(s, _mm_shuffle_epi32(s, 0xB1)));
  }
};

template <ActivationType kType>
struct EncoderOf;
template <>
struct EncoderOf<ActivationType::kF32> : F32Encoder {};
template <>
struct EncoderOf<ActivationType::kBF16> : BF16Encoder {};
template <>
struct EncoderOf<ActivationType::kInt8> : Int8Encoder {};

}  // namespace
}  // namespace ingot::kernels
