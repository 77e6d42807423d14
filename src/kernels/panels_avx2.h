#pragma once

#include <immintrin.h>

#include "kernels/activations.h"
#include "kernels/panels.h"

namespace ingot::kernels {
// Multiplication with weights in panels of 8 rows, for files that are compiled for AVX2. Without a
// name, so that none of this becomes a weak symbol that the linker might give to the rest of the
// program.
//
// An output has one accumulator, a lane, from the first column to the last, whatever the tile:
// rows that are multiplied together, in slabs or alone get the same bits.
namespace {

// Readers of a panel's columns, a type a format. lanes<j>(group, scale) are the 8 rows at
// column j of a group of eight columns; where kScaled, times scale(..) of their block of 32. kWide:
// unpacking takes so many instructions that many rows of activations should share it.

struct F32Panel {
  static constexpr WeightFormat kFormat = WeightFormat::kF32;
  static constexpr bool kScaled = false;
  static constexpr bool kWide = false;
  static constexpr int64_t kGroupBytes = 256;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256) {
    return _mm256_loadu_ps(reinterpret_cast<const float*>(group) + j * 8);
  }
};

struct F16Panel {
  static constexpr WeightFormat kFormat = WeightFormat::kF16;
  static constexpr bool kScaled = false;
  static constexpr bool kWide = false;
  static constexpr int64_t kGroupBytes = 128;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(group) + j));
  }
};

// Of two neighbours in each lane, one as f32.
template <int kWhich>
inline __m256 bf16_of_pair(__m256i pairs) {
  if constexpr (kWhich == 0) return _mm256_castsi256_ps(_mm256_slli_epi32(pairs, 16));
  return _mm256_castsi256_ps(_mm256_and_si256(pairs, _mm256_set1_epi32(-65536)));
}

inline __m256i load_bytes(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}

struct BF16Panel {
  static constexpr WeightFormat kFormat = WeightFormat::kBF16;
  static constexpr bool kScaled = false;
  static constexpr bool kWide = false;
  static constexpr int64_t kGroupBytes = 128;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256) {
    return bf16_of_pair<j % 2>(load_bytes(group + j / 2 * 32));
  }
};

// e4m3 moved to where f32 has sign, exponent and mantissa; then the exponent is made right by a
// multiplication, which makes subnormals right as well.
template <int j>
inline __m256 e4m3_of_four(__m256i fours) {
  const __m256i top = j == 3 ? fours : _mm256_slli_epi32(fours, 24 - 8 * j);
  const __m256i bits =
      _mm256_and_si256(_mm256_srai_epi32(top, 4), _mm256_set1_epi32(static_cast<int>(0x87F00000u)));
  return _mm256_mul_ps(_mm256_castsi256_ps(bits), _mm256_set1_ps(0x1p120f));
}

struct Fp8ChannelPanel {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8Channel;
  static constexpr bool kScaled = false;
  static constexpr bool kWide = true;
  static constexpr int64_t kGroupBytes = 64;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256) {
    return e4m3_of_four<j % 4>(load_bytes(group + j / 4 * 32));
  }
};

struct Fp8BlockPanel {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8Block;
  static constexpr bool kScaled = true;
  static constexpr bool kWide = true;
  static constexpr int64_t kGroupBytes = 64;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256 scale) {
    return _mm256_mul_ps(e4m3_of_four<j % 4>(load_bytes(group + j / 4 * 32)), scale);
  }
  static __m256 scale(const Weight& weight, int64_t panel, int64_t block) {
    const int64_t blocks = (weight.cols + kFp8BlockSize - 1) / kFp8BlockSize;
    const int64_t row = panel * kPanelRows / kFp8BlockSize;
    const int64_t col = block * kPanelBlockColumns / kFp8BlockSize;
    return _mm256_broadcast_ss(static_cast<const float*>(weight.scales) + row * blocks + col);
  }
};

inline __m256 e8m0_of_panel(const Weight& weight, int64_t panel, int64_t block) {
  const auto* scales = static_cast<const uint8_t*>(weight.scales);
  const int64_t at = (panel * panel_blocks(weight.cols) + block) * kPanelRows;
  const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(scales + at));
  const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes), 23);
  // Byte 0 is 2^-127, a subnormal.
  return _mm256_castsi256_ps(_mm256_max_epi32(bits, _mm256_set1_epi32(0x00400000)));
}

struct Mxfp4Panel {
  static constexpr WeightFormat kFormat = WeightFormat::kMxfp4;
  static constexpr bool kScaled = true;
  static constexpr bool kWide = true;
  static constexpr int64_t kGroupBytes = 32;
  template <int j>
  static __m256 lanes(const std::byte* group, __m256 scale) {
    const __m256i codes = _mm256_srli_epi32(load_bytes(group), j % 4 * 8 + j / 4 * 4);
    const __m256 magnitudes = _mm256_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6);
    const __m256 sign = _mm256_castsi256_ps(
        _mm256_and_si256(_mm256_slli_epi32(codes, 28), _mm256_set1_epi32(INT32_MIN)));
    const __m256 value = _mm256_xor_ps(_mm256_permutevar8x32_ps(magnitudes, codes), sign);
    return _mm256_mul_ps(value, scale);
  }
  static __m256 scale(const Weight& weight, int64_t panel, int64_t block) {
    return e8m0_of_panel(weight, panel, block);
  }
};

}  // namespace
}  // namespace ingot::kernels
