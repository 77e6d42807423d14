#include "kernels/quantize_fp8_avx2.h"

#include <immintrin.h>

#include <cstring>

#include "base/check.h"
#include "kernels/e4m3_avx2.h"
#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

// Also f32 values as the stored type can hold them.
struct F32 : F32Lanes {
  static __m256 rounded(__m256 v) { return v; }
};
struct F16 : F16Lanes {
  static __m256 rounded(__m256 v) {
    return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
};
struct BF16 : BF16Lanes {
  static __m256 rounded(__m256 v) {
    const __m256i bits = _mm256_castps_si256(v);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_add_epi32(bits, half),
                                                _mm256_set1_epi32(static_cast<int>(0xFFFF0000))));
  }
};

inline __m256d magnitude_of(__m256d v) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), v); }

// Lanes l and l + 4, then l and l + 2, then the last two.
inline double add_lanes(__m256d low, __m256d high) {
  const __m256d four = _mm256_add_pd(low, high);
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline double max_lane(__m256d v) {
  const __m128d two = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_max_sd(two, _mm_unpackhi_pd(two, two)));
}

// Calls visit(k, values) for each eight values of a row, the last eight padded with zeros.
template <typename T, typename Visit>
inline void for_eights(const typename T::Element* source, int64_t cols, const Visit& visit) {
  int64_t k = 0;
  for (; k + 8 <= cols; k += 8) visit(k, T::load(source + k));
  if (k < cols) {
    typename T::Element padded[8] = {};
    std::memcpy(padded, source + k, static_cast<size_t>(cols - k) * sizeof(typename T::Element));
    visit(k, T::load(padded));
  }
}

// Bits of a row's largest magnitude; those of NaN and infinity are the largest.
template <typename T>
inline uint32_t magnitude_max_bits(const typename T::Element* source, int64_t cols) {
  __m256i max = _mm256_setzero_si256();
  for_eights<T>(source, cols, [&](int64_t, __m256 values) {
    max = _mm256_max_epi32(max, _mm256_castps_si256(magnitude_of(values)));
  });
  alignas(32) uint32_t lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), max);
  uint32_t largest = 0;
  for (const uint32_t lane : lanes) largest = lane > largest ? lane : largest;
  return largest;
}

// Sums of one row; 0 is of the lower four of eight values, 1 of the upper.
struct RowSums {
  __m256d squares[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
  __m256d squared_errors[2] = {_mm256_setzero_pd(), _mm256_setzero_pd()};
  __m256d error_max = _mm256_setzero_pd();

  void add(int half, __m128 values, __m128 magnitudes, __m256d scale) {
    const __m256d value = magnitude_of(_mm256_cvtps_pd(values));
    const __m256d error = _mm256_sub_pd(_mm256_mul_pd(_mm256_cvtps_pd(magnitudes), scale), value);
    squares[half] = _mm256_add_pd(squares[half], _mm256_mul_pd(value, value));
    squared_errors[half] = _mm256_add_pd(squared_errors[half], _mm256_mul_pd(error, error));
    error_max = _mm256_max_pd(error_max, magnitude_of(error));
  }
};

template <typename T>
inline RowSums encode_row(const typename T::Element* source, int64_t cols, float scale,
                          uint8_t* codes) {
  const __m256 stored = _mm256_set1_ps(scale);
  const __m256 rounded_scale = T::rounded(stored);
  const __m256 divisor = _mm256_blendv_ps(
      rounded_scale, stored, _mm256_cmp_ps(rounded_scale, _mm256_setzero_ps(), _CMP_EQ_OQ));
  const __m256d wide_scale = _mm256_set1_pd(static_cast<double>(scale));
  RowSums sums;
  for_eights<T>(source, cols, [&](int64_t k, __m256 values) {
    const RoundedE4M3 rounded = round_to_e4m3(T::rounded(_mm256_div_ps(values, divisor)));
    sums.add(0, _mm256_castps256_ps128(values), _mm256_castps256_ps128(rounded.magnitudes),
             wide_scale);
    sums.add(1, _mm256_extractf128_ps(values, 1), _mm256_extractf128_ps(rounded.magnitudes, 1),
             wide_scale);
    const uint64_t packed = pack_codes(rounded.codes, values);
    std::memcpy(codes + k, &packed, cols - k < 8 ? static_cast<size_t>(cols - k) : 8);
  });
  return sums;
}

template <typename T>
bool quantize(const QuantizeFp8Args& args) {
  CHECK(args.cols > 0);
  double sum_squares = 0;
  double sum_squared_errors = 0;
  double error_max = 0;
  for (int64_t row = 0; row < args.rows; ++row) {
    const auto* source = static_cast<const typename T::Element*>(args.values) + row * args.cols;
    const uint32_t bits = magnitude_max_bits<T>(source, args.cols);
    if (bits >= 0x7F800000) return false;
    float magnitude_max;
    std::memcpy(&magnitude_max, &bits, sizeof bits);
    const float scale = magnitude_max / 448;
    args.scales[row] = scale == 0 ? 0x1p-23f : scale;
    const RowSums sums =
        encode_row<T>(source, args.cols, args.scales[row], args.codes + row * args.cols);
    sum_squares += add_lanes(sums.squares[0], sums.squares[1]);
    sum_squared_errors += add_lanes(sums.squared_errors[0], sums.squared_errors[1]);
    const double largest = max_lane(sums.error_max);
    error_max = largest > error_max ? largest : error_max;
  }
  *args.sum_squares += sum_squares;
  *args.sum_squared_errors += sum_squared_errors;
  const auto error_max_f32 = static_cast<float>(error_max);
  if (error_max_f32 > *args.error_max) *args.error_max = error_max_f32;
  return true;
}

}  // namespace

bool quantize_fp8_f32_avx2(const QuantizeFp8Args& args) { return quantize<F32>(args); }
bool quantize_fp8_f16_avx2(const QuantizeFp8Args& args) { return quantize<F16>(args); }
bool quantize_fp8_bf16_avx2(const QuantizeFp8Args& args) { return quantize<BF16>(args); }

}  // namespace ingot::kernels
