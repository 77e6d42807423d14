#include "kernels/quantize_mxfp4_avx2.h"

#include <immintrin.h>

#include <cstring>

#include "base/check.h"
#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

// About 110 instructions a block of 32 values for rounding and sums, 50 for its scale, its totals
// and packing. Products and sums stay separate instructions, as in the reference.

constexpr int64_t kBlockValues = 32;
constexpr int kVectors = 4;  // of eight values a block
constexpr int kExponentMax = 254;

inline uint32_t max_lane(__m256i v) {
  __m128i max = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  max = _mm_max_epi32(max, _mm_shuffle_epi32(max, 0x4E));
  max = _mm_max_epi32(max, _mm_shuffle_epi32(max, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(max));
}

inline float max_lane(__m256 v) {  // of magnitudes, whose bits have the same order
  return _mm_cvtss_f32(
      _mm_castsi128_ps(_mm_cvtsi32_si128(static_cast<int>(max_lane(_mm256_castps_si256(v))))));
}

inline int64_t add_lanes(__m256i v) {
  alignas(32) int lanes[8];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), v);
  int64_t sum = 0;
  for (const int lane : lanes) sum += lane;
  return sum;
}

// {sum of a, sum of b}: lanes l and l + 4, then l and l + 2, then the last two.
inline __m128d add_lanes(__m256 a, __m256 b) {
  const __m128 a4 = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 b4 = _mm_add_ps(_mm256_castps256_ps128(b), _mm256_extractf128_ps(b, 1));
  const __m128 both = _mm_add_ps(_mm_shuffle_ps(a4, b4, 0x44), _mm_shuffle_ps(a4, b4, 0xEE));
  return _mm_cvtps_pd(
      _mm_add_ps(_mm_shuffle_ps(both, both, 0x88), _mm_shuffle_ps(both, both, 0xDD)));
}

struct Block {
  __m256 values[kVectors];
  uint32_t magnitude_max_bits;
};

template <typename T>
inline Block load_block(const typename T::Element* source) {
  Block block;
  __m256i max = _mm256_setzero_si256();
  for (int i = 0; i < kVectors; ++i) {
    block.values[i] = T::load(source + 8 * i);
    max = _mm256_max_epi32(max, _mm256_castps_si256(magnitude_of(block.values[i])));
  }
  block.magnitude_max_bits = max_lane(max);
  return block;
}

// What an exponent means: codes stand for multiples of 2^(exponent - 127).
struct Scale {
  explicit Scale(int exponent)
      : value(power_of_two(exponent)),
        inverse(power_of_two(kExponentMax - exponent)),
        stored_over_used(_mm256_set1_ps(exponent == 0 ? 2 : 1)),
        square(_mm_castsi128_pd(
            _mm_set1_epi64x(static_cast<int64_t>(2 * exponent + 1023 - 254) << 52))) {}

  static __m256 power_of_two(int byte) {
    const int bits = byte == 0 ? 1 << 22 : byte << 23;  // 2^-127 is an f32 subnormal
    return _mm256_castsi256_ps(_mm256_set1_epi32(bits));
  }

  __m256 value;
  __m256 inverse;
  __m256 stored_over_used;
  __m128d square;
};

inline int even_exponent(uint32_t magnitude_bits) {
  const int rounded = static_cast<int>((magnitude_bits + (1u << 21)) >> 23);
  if (rounded >= 255) return kExponentMax;
  return rounded < 2 ? 0 : rounded - 2;
}

// Magnitudes after rounding to e2m1; the low three bits of `codes` are their codes.
struct Rounded {
  __m256 values;
  __m256i codes;
};

// Codes are 0.5 apart below 2, 1 below 4, 2 above. Adding the power of two whose last bit is worth
// that much rounds to nearest even, and leaves how often the step fits in the sum's last bits. Per
// binade above the first the code is two more than that, which the exponent, one place above,
// supplies; the 6 makes up for its bias.
inline Rounded round_to_e2m1(__m256 scaled) {
  const __m256 clamped = _mm256_min_ps(scaled, _mm256_set1_ps(6));
  const __m256i binade =
      _mm256_and_si256(_mm256_castps_si256(_mm256_max_ps(clamped, _mm256_set1_ps(1))),
                       _mm256_set1_epi32(0x7F800000));
  const __m256 offset =
      _mm256_castsi256_ps(_mm256_add_epi32(binade, _mm256_set1_epi32((22 << 23) + 6)));
  const __m256 sum = _mm256_add_ps(clamped, offset);
  const __m256i bits = _mm256_castps_si256(sum);
  return {_mm256_sub_ps(sum, offset), _mm256_add_epi32(bits, _mm256_srli_epi32(bits, 22))};
}

inline __m256 error_of(const Rounded& rounded, __m256 scaled, const Scale& scale) {
  return _mm256_sub_ps(_mm256_mul_ps(rounded.values, scale.stored_over_used), scaled);
}

// Sum of a block's squared errors under an exponent.
inline double squared_error(const Block& block, int exponent) {
  const Scale scale(exponent);
  __m256 sum = _mm256_setzero_ps();
  for (const __m256& value : block.values) {
    const __m256 scaled = _mm256_mul_ps(magnitude_of(value), scale.inverse);
    const __m256 error = error_of(round_to_e2m1(scaled), scaled, scale);
    sum = _mm256_add_ps(sum, _mm256_mul_ps(error, error));
  }
  return _mm_cvtsd_f64(_mm_mul_pd(add_lanes(sum, sum), scale.square));
}

inline int best_exponent(const Block& block, int even) {
  int best = even;
  double least = squared_error(block, even);
  for (int exponent = even - 1; exponent <= even + 1; exponent += 2) {
    if (exponent < 0 || exponent > kExponentMax) continue;
    const double error = squared_error(block, exponent);
    if (error < least) {
      best = exponent;
      least = error;
    }
  }
  return best;
}

// Statistics as they grow, in registers.
struct Totals {
  __m128d sums = _mm_setzero_pd();  // of squares, and of squared errors
  __m256 error_max = _mm256_setzero_ps();
  __m256i clipped = _mm256_setzero_si256();  // negative counts, of one row
  uint32_t magnitude_max_bits = 0;
  uint64_t num_zero_blocks = 0;
  uint64_t* scale_bytes = nullptr;
};

// Four vectors of values 0..15, a value to 32 bits, as 16 bytes of two nibbles; 8, which is -0, as
// 0.
inline __m128i pack_codes(const __m256i (&codes)[kVectors]) {
  __m256i bytes = _mm256_packus_epi16(_mm256_packus_epi32(codes[0], codes[1]),
                                      _mm256_packus_epi32(codes[2], codes[3]));
  bytes = _mm256_andnot_si256(_mm256_cmpeq_epi8(bytes, _mm256_set1_epi8(8)), bytes);
  const __m256i pairs = _mm256_maddubs_epi16(bytes, _mm256_set1_epi16(0x1001));
  const __m128i packed =
      _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  // The packing went half by half: bytes 0 and 1 are of values 0..3, bytes 8 and 9 of 4..7.
  return _mm_shuffle_epi8(packed,
                          _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
}

// Rounds a block, adds what that did to `totals` and the scale byte to `scale_byte`.
inline __m128i encode_block(const Block& block, int exponent, Totals& totals, uint8_t& scale_byte) {
  const Scale scale(exponent);
  __m256 squares = _mm256_setzero_ps();
  __m256 squared_errors = _mm256_setzero_ps();
  __m256 error_max = _mm256_setzero_ps();
  __m256i codes[kVectors];
  for (int i = 0; i < kVectors; ++i) {
    const __m256 scaled = _mm256_mul_ps(magnitude_of(block.values[i]), scale.inverse);
    totals.clipped = _mm256_add_epi32(
        totals.clipped, _mm256_castps_si256(_mm256_cmp_ps(scaled, _mm256_set1_ps(6), _CMP_GT_OQ)));
    const Rounded rounded = round_to_e2m1(scaled);
    const __m256 error = error_of(rounded, scaled, scale);
    squares = _mm256_add_ps(squares, _mm256_mul_ps(scaled, scaled));
    squared_errors = _mm256_add_ps(squared_errors, _mm256_mul_ps(error, error));
    error_max = _mm256_max_ps(error_max, magnitude_of(error));
    const __m256i signs = _mm256_srli_epi32(_mm256_castps_si256(block.values[i]), 28);
    codes[i] = _mm256_or_si256(_mm256_and_si256(rounded.codes, _mm256_set1_epi32(7)),
                               _mm256_and_si256(signs, _mm256_set1_epi32(8)));
  }
  totals.error_max = _mm256_max_ps(totals.error_max, _mm256_mul_ps(error_max, scale.value));
  totals.sums =
      _mm_add_pd(totals.sums, _mm_mul_pd(add_lanes(squares, squared_errors), scale.square));
  totals.num_zero_blocks += block.magnitude_max_bits == 0;
  if (block.magnitude_max_bits > totals.magnitude_max_bits) {
    totals.magnitude_max_bits = block.magnitude_max_bits;
  }
  scale_byte = static_cast<uint8_t>(exponent == 0 ? 1 : exponent);
  ++totals.scale_bytes[scale_byte];
  return pack_codes(codes);
}

template <typename T, ScaleSearch kSearch>
inline __m128i quantize_block(const typename T::Element* source, Totals& totals,
                              uint8_t& scale_byte) {
  const Block block = load_block<T>(source);
  int exponent = even_exponent(block.magnitude_max_bits);
  if constexpr (kSearch == ScaleSearch::kSquaredError) exponent = best_exponent(block, exponent);
  return encode_block(block, exponent, totals, scale_byte);
}

template <typename T, ScaleSearch kSearch>
inline void quantize_row(const typename T::Element* source, int64_t cols, uint8_t* codes,
                         uint8_t* scales, Totals& totals) {
  int64_t k = 0;
  for (; k + kBlockValues <= cols; k += kBlockValues) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + k / 2),
                     quantize_block<T, kSearch>(source + k, totals, *scales++));
  }
  if (k < cols) {
    const auto count = static_cast<size_t>(cols - k);
    typename T::Element padded[kBlockValues] = {};
    std::memcpy(padded, source + k, count * sizeof(typename T::Element));
    const __m128i packed = quantize_block<T, kSearch>(padded, totals, *scales);
    std::memcpy(codes + k / 2, &packed, count / 2);
  }
}

template <typename T, ScaleSearch kSearch>
bool quantize(const QuantizeMxfp4Args& args) {
  CHECK(args.cols > 0 && args.cols % 2 == 0);
  const auto* source = static_cast<const typename T::Element*>(args.values);
  const int64_t row_blocks = (args.cols + kBlockValues - 1) / kBlockValues;
  RoundingStatistics statistics;
  Totals totals;
  totals.scale_bytes = statistics.scale_bytes.data();
  for (int64_t row = 0; row < args.rows; ++row) {
    quantize_row<T, kSearch>(source + row * args.cols, args.cols,
                             args.codes + row * (args.cols / 2), args.scales + row * row_blocks,
                             totals);
    statistics.num_clipped += static_cast<uint64_t>(-add_lanes(totals.clipped));
    totals.clipped = _mm256_setzero_si256();
  }
  if (totals.magnitude_max_bits >= 0x7F800000) return false;
  statistics.num_values = static_cast<uint64_t>(args.rows * args.cols);
  statistics.num_blocks = static_cast<uint64_t>(args.rows * row_blocks);
  statistics.num_zero_blocks = totals.num_zero_blocks;
  statistics.sum_squares = _mm_cvtsd_f64(totals.sums);
  statistics.sum_squared_errors = _mm_cvtsd_f64(_mm_unpackhi_pd(totals.sums, totals.sums));
  statistics.error_max = max_lane(totals.error_max);
  std::memcpy(&statistics.magnitude_max, &totals.magnitude_max_bits, sizeof(float));
  args.statistics->add(statistics);
  return true;
}

}  // namespace

bool quantize_mxfp4_f32_avx2(const QuantizeMxfp4Args& args) {
  return quantize<F32Lanes, ScaleSearch::kEven>(args);
}
bool quantize_mxfp4_f16_avx2(const QuantizeMxfp4Args& args) {
  return quantize<F16Lanes, ScaleSearch::kEven>(args);
}
bool quantize_mxfp4_bf16_avx2(const QuantizeMxfp4Args& args) {
  return quantize<BF16Lanes, ScaleSearch::kEven>(args);
}
bool quantize_mxfp4_f32_search_avx2(const QuantizeMxfp4Args& args) {
  return quantize<F32Lanes, ScaleSearch::kSquaredError>(args);
}
bool quantize_mxfp4_f16_search_avx2(const QuantizeMxfp4Args& args) {
  return quantize<F16Lanes, ScaleSearch::kSquaredError>(args);
}
bool quantize_mxfp4_bf16_search_avx2(const QuantizeMxfp4Args& args) {
  return quantize<BF16Lanes, ScaleSearch::kSquaredError>(args);
}

}  // namespace ingot::kernels
