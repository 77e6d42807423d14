#include "kernels/quantize_mxfp4_avx2.h"

#include <immintrin.h>

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

// About 120 instructions a block of 32 values for rounding, sums and packing, 40 for the rest. What
// has one value a block, its largest magnitude, its scale and its sums, is found for eight blocks
// at once: the way from a block's values through its scale back to its values is long, and so eight
// of them overlap. Products and sums stay separate instructions, as in the reference.

constexpr int64_t kBlockValues = 32;
constexpr int kVectors = 4;  // of eight values a block
constexpr int64_t kBatchBlocks = 8;
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

// Lanes l and l + 4, then l and l + 2, then the last two.
inline float add_lanes(__m256 v) {
  const __m128 fours = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 twos = _mm_add_ps(fours, _mm_movehl_ps(fours, fours));
  return _mm_cvtss_f32(_mm_add_ss(twos, _mm_movehdup_ps(twos)));
}

// The same of each of eight vectors.
inline __m256 add_lanes(const __m256 (&v)[kBatchBlocks]) {
  __m256 fours[4];  // of v[i] in the low half, of v[i + 4] in the high one
  for (int i = 0; i < 4; ++i) {
    fours[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20),
                             _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
  }
  __m256 twos[2];
  for (int i = 0; i < 2; ++i) {
    twos[i] = _mm256_add_ps(_mm256_shuffle_ps(fours[2 * i], fours[2 * i + 1], 0x44),
                            _mm256_shuffle_ps(fours[2 * i], fours[2 * i + 1], 0xEE));
  }
  return _mm256_add_ps(_mm256_shuffle_ps(twos[0], twos[1], 0x88),
                       _mm256_shuffle_ps(twos[0], twos[1], 0xDD));
}

// The largest lane of each of eight vectors, of values that are not negative.
inline __m256i max_lanes(const __m256i (&v)[kBatchBlocks]) {
  __m256i fours[4];
  for (int i = 0; i < 4; ++i) {
    fours[i] = _mm256_max_epi32(_mm256_permute2x128_si256(v[i], v[i + 4], 0x20),
                                _mm256_permute2x128_si256(v[i], v[i + 4], 0x31));
  }
  __m256i twos[2];
  for (int i = 0; i < 2; ++i) {
    twos[i] = _mm256_max_epi32(_mm256_unpacklo_epi32(fours[2 * i], fours[2 * i + 1]),
                               _mm256_unpackhi_epi32(fours[2 * i], fours[2 * i + 1]));
  }
  return _mm256_max_epi32(_mm256_unpacklo_epi64(twos[0], twos[1]),
                          _mm256_unpackhi_epi64(twos[0], twos[1]));
}

// Lanes whose largest is a block's largest magnitude, as bits.
template <typename T>
inline __m256i magnitude_bits(const typename T::Element* source) {
  if constexpr (std::is_same_v<T, BF16Lanes>) {
    // As stored they have the same order, and twice as many fit.
    const __m256i* values = reinterpret_cast<const __m256i*>(source);
    const __m256i magnitude = _mm256_set1_epi16(0x7FFF);
    const __m256i max =
        _mm256_max_epu16(_mm256_and_si256(_mm256_loadu_si256(values), magnitude),
                         _mm256_and_si256(_mm256_loadu_si256(values + 1), magnitude));
    return _mm256_and_si256(_mm256_max_epu16(max, _mm256_slli_epi32(max, 16)),
                            _mm256_set1_epi32(static_cast<int>(0xFFFF0000)));
  }
  __m256i max = _mm256_setzero_si256();
  for (int i = 0; i < kVectors; ++i) {
    max = _mm256_max_epi32(max, _mm256_castps_si256(magnitude_of(T::load(source + 8 * i))));
  }
  return max;
}

// 2^(byte - 127).
inline __m256 power_of_two(__m256i byte) {
  const __m256i subnormal = _mm256_set1_epi32(1 << 22);  // of byte 0
  return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_slli_epi32(byte, 23), subnormal));
}

inline __m256 inverse_of(__m256i exponent) {
  return power_of_two(_mm256_sub_epi32(_mm256_set1_epi32(kExponentMax), exponent));
}

inline __m256i even_exponents(__m256i magnitude_bits) {
  const __m256i rounded =
      _mm256_srli_epi32(_mm256_add_epi32(magnitude_bits, _mm256_set1_epi32(1 << 21)), 23);
  const __m256i beyond = _mm256_cmpgt_epi32(rounded, _mm256_set1_epi32(kExponentMax));  // -1 or 0
  const __m256i exponent =
      _mm256_sub_epi32(_mm256_sub_epi32(rounded, _mm256_set1_epi32(2)), beyond);
  return _mm256_max_epi32(_mm256_min_epi32(exponent, _mm256_set1_epi32(kExponentMax)),
                          _mm256_setzero_si256());
}

// Magnitudes rounded to e2m1. Its values are 0.5 apart below 2, 1 below 4, 2 above: adding the
// power of two whose last bit is worth that much rounds to nearest even.
inline __m256 round_to_e2m1(__m256 scaled) {
  const __m256 clamped = _mm256_min_ps(scaled, _mm256_set1_ps(6));
  const __m256i binade =
      _mm256_and_si256(_mm256_castps_si256(_mm256_max_ps(clamped, _mm256_set1_ps(1))),
                       _mm256_set1_epi32(0x7F800000));
  const __m256 offset = _mm256_castsi256_ps(_mm256_add_epi32(binade, _mm256_set1_epi32(22 << 23)));
  return _mm256_sub_ps(_mm256_add_ps(clamped, offset), offset);
}

// Sum of a block's squared errors under an exponent.
template <typename T>
inline double squared_error(const typename T::Element* source, int exponent) {
  const __m256i exponents = _mm256_set1_epi32(exponent);
  const __m256 inverse = inverse_of(exponents);
  const __m256 stored_over_used = _mm256_set1_ps(exponent == 0 ? 2 : 1);
  __m256 sums = _mm256_setzero_ps();
  for (int i = 0; i < kVectors; ++i) {
    const __m256 scaled = _mm256_mul_ps(magnitude_of(T::load(source + 8 * i)), inverse);
    const __m256 error =
        _mm256_sub_ps(_mm256_mul_ps(round_to_e2m1(scaled), stored_over_used), scaled);
    sums = _mm256_add_ps(sums, _mm256_mul_ps(error, error));
  }
  const double scale = _mm256_cvtss_f32(power_of_two(exponents));
  return add_lanes(sums) * (scale * scale);
}

template <typename T>
inline int best_exponent(const typename T::Element* source, int even) {
  int best = even;
  double least = squared_error<T>(source, even);
  for (int exponent = even - 1; exponent <= even + 1; exponent += 2) {
    if (exponent < 0 || exponent > kExponentMax) continue;
    const double error = squared_error<T>(source, exponent);
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
  __m256i magnitude_max_bits = _mm256_setzero_si256();
  uint64_t num_zero_blocks = 0;
  uint64_t* scale_bytes = nullptr;
};

// What eight blocks have one of each.
struct Batch {
  alignas(32) int exponents[kBatchBlocks];
  alignas(32) float scales[kBatchBlocks];
  alignas(32) float inverses[kBatchBlocks];
  __m256 squares[kBatchBlocks];  // lanes to be added
  __m256 squared_errors[kBatchBlocks];
};

// A block's values, and what round_vector() made of them, as 16 bytes of two codes.
inline __m128i pack_codes(const __m256 (&values)[kVectors], const __m256i (&rounded)[kVectors]) {
  const __m256i below_half = _mm256_set1_epi16(251);  // 0.5 has 252, 1 has 254, 6 has 259
  const auto in_16_bits = [&](int i) {
    return _mm256_subs_epu16(_mm256_packs_epi32(rounded[i], rounded[i + 1]), below_half);
  };
  const __m256i magnitudes = _mm256_packs_epi16(in_16_bits(0), in_16_bits(2));
  // Saturation keeps the sign, that of -0 included.
  const auto bits = [&](int i) { return _mm256_castps_si256(values[i]); };
  const __m256i signs = _mm256_packs_epi16(_mm256_packs_epi32(bits(0), bits(1)),
                                           _mm256_packs_epi32(bits(2), bits(3)));
  // Of 0, 0.5, nothing, 1, 1.5 and so on. There is no code for -0.
  const __m128i positive = _mm_setr_epi8(0, 1, 0, 2, 3, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0);
  const __m128i negative = _mm_setr_epi8(0, 9, 0, 10, 11, 12, 13, 14, 15, 0, 0, 0, 0, 0, 0, 0);
  const __m256i codes = _mm256_blendv_epi8(
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(positive), magnitudes),
      _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(negative), magnitudes), signs);
  const __m256i pairs = _mm256_maddubs_epi16(codes, _mm256_set1_epi16(0x1001));
  const __m128i packed =
      _mm_packus_epi16(_mm256_castsi256_si128(pairs), _mm256_extracti128_si256(pairs, 1));
  // The packing went half by half: bytes 0 and 1 are of values 0..3, bytes 8 and 9 of 4..7.
  return _mm_shuffle_epi8(packed,
                          _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
}

// Lanes of a block's sums, in units of its scale.
struct BlockSums {
  __m256 squares = _mm256_setzero_ps();
  __m256 squared_errors = _mm256_setzero_ps();
  __m256 error_max = _mm256_setzero_ps();
};

// The rounded magnitudes of eight values, of each the exponent and the first bit of the fraction.
// kDoubles: the block's exponent is 0. Inlined by force, since a block fits the registers only
// then.
template <bool kDoubles>
[[gnu::always_inline]] inline __m256i round_vector(__m256 values, __m256 inverse, BlockSums& sums,
                                                   __m256i& clipped) {
  const __m256 scaled = _mm256_mul_ps(magnitude_of(values), inverse);
  const __m256 beyond = _mm256_cmp_ps(scaled, _mm256_set1_ps(6), _CMP_GT_OQ);
  clipped = _mm256_add_epi32(clipped, _mm256_castps_si256(beyond));
  const __m256 rounded = round_to_e2m1(scaled);
  const __m256 decoded = kDoubles ? _mm256_add_ps(rounded, rounded) : rounded;
  const __m256 error = _mm256_sub_ps(decoded, scaled);
  sums.squares = _mm256_add_ps(sums.squares, _mm256_mul_ps(scaled, scaled));
  sums.squared_errors = _mm256_add_ps(sums.squared_errors, _mm256_mul_ps(error, error));
  sums.error_max = _mm256_max_ps(sums.error_max, magnitude_of(error));
  return _mm256_srli_epi32(_mm256_castps_si256(rounded), 22);
}

// Rounds block `b` of a batch by its scale.
template <typename T, bool kDoubles>
[[gnu::always_inline]] inline __m128i encode_block(const typename T::Element* source, Batch& batch,
                                                   int64_t b, Totals& totals) {
  const __m256 inverse = _mm256_broadcast_ss(&batch.inverses[b]);
  BlockSums sums;
  __m256i clipped = totals.clipped;
  const __m256 values[kVectors] = {T::load(source), T::load(source + 8), T::load(source + 16),
                                   T::load(source + 24)};
  const __m256i rounded[kVectors] = {round_vector<kDoubles>(values[0], inverse, sums, clipped),
                                     round_vector<kDoubles>(values[1], inverse, sums, clipped),
                                     round_vector<kDoubles>(values[2], inverse, sums, clipped),
                                     round_vector<kDoubles>(values[3], inverse, sums, clipped)};
  batch.squares[b] = sums.squares;
  batch.squared_errors[b] = sums.squared_errors;
  totals.clipped = clipped;
  totals.error_max = _mm256_max_ps(
      totals.error_max, _mm256_mul_ps(sums.error_max, _mm256_broadcast_ss(&batch.scales[b])));
  return pack_codes(values, rounded);
}

// Adds the blocks' sums in their order, in units of the values.
inline void add_sums(const Batch& batch, Totals& totals) {
  const __m256 squares = add_lanes(batch.squares);
  const __m256 errors = add_lanes(batch.squared_errors);
  const auto add_four = [&](__m128 four_squares, __m128 four_errors, const float* scales) {
    const __m256d scale = _mm256_cvtps_pd(_mm_load_ps(scales));
    const __m256d unit = _mm256_mul_pd(scale, scale);
    const __m256d s = _mm256_mul_pd(_mm256_cvtps_pd(four_squares), unit);
    const __m256d e = _mm256_mul_pd(_mm256_cvtps_pd(four_errors), unit);
    const __m256d even = _mm256_unpacklo_pd(s, e);  // of blocks 0 and 2
    const __m256d odd = _mm256_unpackhi_pd(s, e);
    totals.sums = _mm_add_pd(totals.sums, _mm256_castpd256_pd128(even));
    totals.sums = _mm_add_pd(totals.sums, _mm256_castpd256_pd128(odd));
    totals.sums = _mm_add_pd(totals.sums, _mm256_extractf128_pd(even, 1));
    totals.sums = _mm_add_pd(totals.sums, _mm256_extractf128_pd(odd, 1));
  };
  add_four(_mm256_castps256_ps128(squares), _mm256_castps256_ps128(errors), batch.scales);
  add_four(_mm256_extractf128_ps(squares, 1), _mm256_extractf128_ps(errors, 1), batch.scales + 4);
}

// The next `count` blocks of a row, at most kBatchBlocks. Those that lack add nothing to any sum.
template <typename T, ScaleSearch kSearch>
inline void quantize_batch(const typename T::Element* source, int64_t count, uint8_t* codes,
                           uint8_t* scales, Totals& totals) {
  __m256i maxima[kBatchBlocks] = {};
  for (int64_t b = 0; b < count; ++b) maxima[b] = magnitude_bits<T>(source + b * kBlockValues);
  const __m256i max = max_lanes(maxima);
  totals.magnitude_max_bits = _mm256_max_epi32(totals.magnitude_max_bits, max);
  const int zeros =
      _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(max, _mm256_setzero_si256())));
  totals.num_zero_blocks +=
      static_cast<uint64_t>(std::popcount(static_cast<unsigned>(zeros)) - (kBatchBlocks - count));
  Batch batch;
  auto* const exponents = reinterpret_cast<__m256i*>(batch.exponents);
  _mm256_store_si256(exponents, even_exponents(max));
  if constexpr (kSearch == ScaleSearch::kSquaredError) {
    for (int64_t b = 0; b < count; ++b) {
      batch.exponents[b] = best_exponent<T>(source + b * kBlockValues, batch.exponents[b]);
    }
  }
  _mm256_store_ps(batch.scales, power_of_two(_mm256_load_si256(exponents)));
  _mm256_store_ps(batch.inverses, inverse_of(_mm256_load_si256(exponents)));
  for (int64_t b = 0; b < count; ++b) {
    const auto byte = static_cast<uint8_t>(batch.exponents[b] == 0 ? 1 : batch.exponents[b]);
    scales[b] = byte;
    ++totals.scale_bytes[byte];
    const typename T::Element* block = source + b * kBlockValues;
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + b * kBlockValues / 2),
                     batch.exponents[b] == 0 ? encode_block<T, true>(block, batch, b, totals)
                                             : encode_block<T, false>(block, batch, b, totals));
  }
  for (int64_t b = count; b < kBatchBlocks; ++b) {
    batch.squares[b] = batch.squared_errors[b] = _mm256_setzero_ps();
  }
  add_sums(batch, totals);
}

template <typename T, ScaleSearch kSearch>
inline void quantize_row(const typename T::Element* source, int64_t cols, uint8_t* codes,
                         uint8_t* scales, Totals& totals) {
  const int64_t whole_blocks = cols / kBlockValues;
  for (int64_t first = 0; first < whole_blocks; first += kBatchBlocks) {
    const int64_t left = whole_blocks - first;
    quantize_batch<T, kSearch>(source + first * kBlockValues,
                               left < kBatchBlocks ? left : kBatchBlocks,
                               codes + first * kBlockValues / 2, scales + first, totals);
  }
  const int64_t k = whole_blocks * kBlockValues;
  if (k < cols) {
    const auto count = static_cast<size_t>(cols - k);
    typename T::Element padded[kBlockValues] = {};
    std::memcpy(padded, source + k, count * sizeof(typename T::Element));
    uint8_t packed[kBlockValues / 2];
    quantize_batch<T, kSearch>(padded, 1, packed, scales + whole_blocks, totals);
    std::memcpy(codes + k / 2, packed, count / 2);
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
  const uint32_t magnitude_max_bits = max_lane(totals.magnitude_max_bits);
  if (magnitude_max_bits >= 0x7F800000) return false;
  statistics.num_values = static_cast<uint64_t>(args.rows * args.cols);
  statistics.num_blocks = static_cast<uint64_t>(args.rows * row_blocks);
  statistics.num_zero_blocks = totals.num_zero_blocks;
  statistics.sum_squares = _mm_cvtsd_f64(totals.sums);
  statistics.sum_squared_errors = _mm_cvtsd_f64(_mm_unpackhi_pd(totals.sums, totals.sums));
  statistics.error_max = max_lane(totals.error_max);
  statistics.magnitude_max = std::bit_cast<float>(magnitude_max_bits);
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
