#pragma once

#include <cstdint>

#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
// Readers of stored rows, and hints for those who read many, for files that are compiled for AVX2;
// without a name, as in lanes_avx2.h.
namespace {

// Stored rows are read by sixteens, as two vectors. kPairs: `first` has the values of even index
// and `second` those of odd index, for which bf16 needs one instruction each; otherwise they are
// the lower and the upper eight. What is multiplied with such rows, and sums of them, lie in the
// same order ("in the rows' order").
struct F32Row {
  using Element = float;
  static constexpr bool kPairs = false;
  static __m256 first(const float* p) { return _mm256_loadu_ps(p); }
  static __m256 second(const float* p) { return _mm256_loadu_ps(p + 8); }
};
struct F16Row {
  using Element = stored_bits;
  static constexpr bool kPairs = false;
  static __m256 first(const stored_bits* p) { return F16Lanes::load(p); }
  static __m256 second(const stored_bits* p) { return F16Lanes::load(p + 8); }
};
struct BF16Row {
  using Element = stored_bits;
  static constexpr bool kPairs = true;
  static __m256i pairs(const stored_bits* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static __m256 first(const stored_bits* p) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(pairs(p), 16));
  }
  static __m256 second(const stored_bits* p) {
    return _mm256_castsi256_ps(_mm256_and_si256(pairs(p), _mm256_set1_epi32(-65536)));
  }
};

inline constexpr int64_t kRowStep = 16;  // widths are multiples of it

// Sixteen values to the order of pairs, and back.
inline void to_pairs(float* values) {
  const __m256 low = _mm256_loadu_ps(values);
  const __m256 high = _mm256_loadu_ps(values + 8);
  const auto store = [](float* out, __m256 v) {
    const __m256d fours = _mm256_castps_pd(v);
    _mm256_storeu_ps(out, _mm256_castpd_ps(_mm256_permute4x64_pd(fours, 0b11'01'10'00)));
  };
  store(values, _mm256_shuffle_ps(low, high, 0b10'00'10'00));
  store(values + 8, _mm256_shuffle_ps(low, high, 0b11'01'11'01));
}
inline void from_pairs(float* values) {
  const __m256 even = _mm256_loadu_ps(values);
  const __m256 odd = _mm256_loadu_ps(values + 8);
  const __m256 low = _mm256_unpacklo_ps(even, odd);
  const __m256 high = _mm256_unpackhi_ps(even, odd);
  _mm256_storeu_ps(values, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(values + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

// Rearranges values [width] between the orders of two kinds of rows.
template <typename From, typename To>
inline void change_order(float* values, int64_t width) {
  if constexpr (From::kPairs != To::kPairs) {
    for (int64_t k = 0; k < width; k += kRowStep) {
      if constexpr (To::kPairs) {
        to_pairs(values + k);
      } else {
        from_pairs(values + k);
      }
    }
  }
}

// A loaded vector that stays in a register: compilers would rather load it once more for each
// product, and then loads are what a tile waits for.
inline __m256 in_register(__m256 v) {
  asm volatile("" : "+x"(v));
  return v;
}

// A pointer that stays in a register: compilers would rather work out its difference from another.
inline const float* in_register(const float* p) {
  asm volatile("" : "+r"(p));
  return p;
}

// Rows that a later call will read, as stored; they are fetched while this one computes.
struct Ahead {
  const std::byte* const* rows = nullptr;
  int64_t count = 0;
  int64_t row_bytes = 0;
};

inline constexpr int64_t kLine = 64;

// Touches lines of [begin, end) of a row.
inline void fetch(const void* row, int64_t begin, int64_t end) {
  for (int64_t at = begin; at < end; at += kLine) {
    _mm_prefetch(static_cast<const char*>(row) + at, _MM_HINT_T0);
  }
}

}  // namespace
}  // namespace ingot::kernels
