#include <immintrin.h>

#include <cstring>

#include "base/check.h"
#include "kernels/select_topk.h"

namespace ingot::kernels {
namespace {

// Below this a pass over the scores costs nothing worth saving.
constexpr int64_t kCountMin = 64;

// For each mask of eight lanes, the lanes that are set, in order.
struct LanesOfMask {
  uint64_t lanes[256];  // a byte each
};
constexpr LanesOfMask lanes_of_mask() {
  LanesOfMask table = {};
  for (int mask = 0; mask < 256; ++mask) {
    int place = 0;
    for (uint64_t lane = 0; lane < 8; ++lane) {
      if ((mask >> lane & 1) != 0) table.lanes[mask] |= lane << (8 * place++);
    }
  }
  return table;
}
constexpr LanesOfMask kLanesOfMask = lanes_of_mask();

inline __m256i set_lanes(unsigned mask) {
  return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<int64_t>(kLanesOfMask.lanes[mask])));
}

inline unsigned mask_of(__m256i lanes) {
  return static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(lanes)));
}

inline __m256i load(const int32_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
inline void store(int32_t* p, __m256i v) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }

// Floats as signed words in the same order, and back: the same step.
inline int32_t reordered(int32_t bits) { return bits ^ (bits >> 31 & 0x7FFFFFFF); }
inline __m256i reordered(__m256i bits) {
  return _mm256_xor_si256(
      bits, _mm256_and_si256(_mm256_srai_epi32(bits, 31), _mm256_set1_epi32(0x7FFFFFFF)));
}

struct Bounds {
  int32_t low;
  int32_t high;
};

inline void bounds_of_lanes(__m256i low, __m256i high, Bounds& bounds) {
  alignas(32) int32_t lows[8];
  alignas(32) int32_t highs[8];
  store(lows, low);
  store(highs, high);
  for (int lane = 0; lane < 8; ++lane) {
    bounds.low = lows[lane] < bounds.low ? lows[lane] : bounds.low;
    bounds.high = highs[lane] > bounds.high ? highs[lane] : bounds.high;
  }
}

// Writes the scores' ranks, and behind them the least rank up to a multiple of eight.
Bounds rank_scores(const float* scores, int64_t count, int32_t* ranks) {
  const auto rank = [](__m256 values) {  // adding zero makes the two zeros one
    return reordered(_mm256_castps_si256(_mm256_add_ps(values, _mm256_setzero_ps())));
  };
  __m256i low = _mm256_set1_epi32(INT32_MAX);
  __m256i high = _mm256_set1_epi32(INT32_MIN);
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i of_eight = rank(_mm256_loadu_ps(scores + i));
    store(ranks + i, of_eight);
    low = _mm256_min_epi32(low, of_eight);
    high = _mm256_max_epi32(high, of_eight);
  }
  Bounds bounds{INT32_MAX, INT32_MIN};
  bounds_of_lanes(low, high, bounds);
  if (i < count) {
    alignas(32) float rest[8] = {};
    std::memcpy(rest, scores + i, static_cast<size_t>(count - i) * sizeof(float));
    store(ranks + i, rank(_mm256_load_ps(rest)));
    for (int64_t j = i; j < count; ++j) {
      bounds.low = ranks[j] < bounds.low ? ranks[j] : bounds.low;
      bounds.high = ranks[j] > bounds.high ? ranks[j] : bounds.high;
    }
    for (int64_t j = count; j < i + 8; ++j) ranks[j] = INT32_MIN;
  }
  return bounds;
}

inline int64_t padded(int64_t count) { return (count + 7) / 8 * 8; }

// How many ranks are at least `bound`. REQUIRES: bound > INT32_MIN, so that none of those behind
// the last counts.
int64_t count_from(const int32_t* ranks, int64_t count, int32_t bound) {
  const __m256i below = _mm256_set1_epi32(bound - 1);
  __m256i found[4];
  for (__m256i& lanes : found) lanes = _mm256_setzero_si256();
  const int64_t end = padded(count);
  int64_t i = 0;
  for (; i + 32 <= end; i += 32) {
    for (int64_t part = 0; part < 4; ++part) {
      found[part] =
          _mm256_sub_epi32(found[part], _mm256_cmpgt_epi32(load(ranks + i + 8 * part), below));
    }
  }
  for (; i < end; i += 8) {
    found[0] = _mm256_sub_epi32(found[0], _mm256_cmpgt_epi32(load(ranks + i), below));
  }
  alignas(32) int32_t lanes[8];
  store(lanes, _mm256_add_epi32(_mm256_add_epi32(found[0], found[1]),
                                _mm256_add_epi32(found[2], found[3])));
  int64_t sum = 0;
  for (const int32_t lane : lanes) sum += lane;
  return sum;
}

// Copies the ranks within the bounds; `out` may be `ranks`. Returns their number.
int64_t keep_between(const int32_t* ranks, int64_t count, const Bounds& bounds, int32_t* out) {
  const __m256i low = _mm256_set1_epi32(bounds.low);
  const __m256i high = _mm256_set1_epi32(bounds.high);
  int64_t kept = 0;
  for (int64_t i = 0; i < padded(count); i += 8) {
    const __m256i of_eight = load(ranks + i);
    const unsigned outside = mask_of(
        _mm256_or_si256(_mm256_cmpgt_epi32(low, of_eight), _mm256_cmpgt_epi32(of_eight, high)));
    store(out + kept, _mm256_permutevar8x32_epi32(of_eight, set_lanes(~outside & 0xFF)));
    kept += __builtin_popcount(~outside & 0xFF);
  }
  for (int64_t i = kept; i < padded(kept); ++i) out[i] = INT32_MIN;
  return kept;
}

// Between low and high, high included. Every other step goes by the values, which meets the middle
// of most scores, and every other by the ranks, which is done after 32 of them whatever the scores.
inline int32_t middle(const Bounds& bounds, bool by_value) {
  if (by_value) {
    const int32_t low_bits = reordered(bounds.low);
    const int32_t high_bits = reordered(bounds.high);
    float low;
    float high;
    std::memcpy(&low, &low_bits, sizeof low);
    std::memcpy(&high, &high_bits, sizeof high);
    const float value = 0.5f * low + 0.5f * high;
    int32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    const int32_t rank = reordered(bits);
    if (bounds.low < rank && rank <= bounds.high) return rank;
  }
  const uint32_t width = static_cast<uint32_t>(bounds.high) - static_cast<uint32_t>(bounds.low);
  return static_cast<int32_t>(static_cast<uint32_t>(bounds.low) + width / 2 + width % 2);
}

// What to take: every rank above `rank`, and the first `equal` of those that are it.
struct Threshold {
  int32_t rank;
  int64_t equal;
};

// Halves the bounds until one rank is left that has topk at or above it and fewer above; the ranks
// between the bounds are copied together whenever they have become few.
Threshold find_threshold(const int32_t* ranks, int64_t count, int64_t topk, Bounds bounds,
                         int32_t* candidates) {
  const int32_t* active = ranks;
  int64_t num_active = count;
  int64_t num_left_out = 0;  // ranks above the bounds that are no longer among the active
  int64_t from_low = count;  // ranks that are at least low
  int64_t above = 0;         // ranks that are more than high
  for (bool by_value = true; bounds.low < bounds.high; by_value = !by_value) {
    const int32_t bound = middle(bounds, by_value);
    const int64_t found = num_left_out + count_from(active, num_active, bound);
    if (found >= topk) {
      bounds.low = bound;
      from_low = found;
    } else {
      bounds.high = bound - 1;
      above = found;
    }
    if (from_low == topk) break;  // all of those, and no tie to break
    if (from_low - above <= num_active / 4) {
      num_active = keep_between(active, num_active, bounds, candidates);
      num_left_out = above;
      active = candidates;
    }
  }
  if (from_low == topk) return {bounds.low, topk};
  return {bounds.low, topk - above};
}

// Writes the positions of what the threshold says to take.
void write_positions(const int32_t* ranks, const Threshold& threshold, int64_t topk,
                     int32_t* positions) {
  const __m256i rank = _mm256_set1_epi32(threshold.rank);
  int64_t equal_left = threshold.equal;
  int64_t written = 0;
  for (int64_t i = 0; written < topk; i += 8) {
    const __m256i of_eight = load(ranks + i);
    unsigned taken = mask_of(_mm256_cmpgt_epi32(of_eight, rank));
    unsigned equal = mask_of(_mm256_cmpeq_epi32(of_eight, rank));
    const int64_t num_equal = __builtin_popcount(equal);
    for (int64_t extra = num_equal - equal_left; extra > 0; --extra) {
      equal ^= 0x80000000u >> __builtin_clz(equal);  // the last of them
    }
    equal_left -= num_equal < equal_left ? num_equal : equal_left;
    taken |= equal;
    const __m256i at = _mm256_add_epi32(set_lanes(taken), _mm256_set1_epi32(static_cast<int>(i)));
    // Lanes behind the last score may pass for its equals; they come after all that are wanted.
    const int64_t lanes = __builtin_popcount(taken);
    const int64_t num_taken = lanes < topk - written ? lanes : topk - written;
    if (written + 8 <= topk) {
      store(positions + written, at);
    } else {
      alignas(32) int32_t some[8];
      store(some, at);
      std::memcpy(positions + written, some, static_cast<size_t>(num_taken) * sizeof(int32_t));
    }
    written += num_taken;
  }
}

}  // namespace

void select_topk_avx2(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                      int32_t* positions) {
  if (count < kCountMin) return select_topk_reference(scores, count, topk, order, positions);
  CHECK(0 < topk && topk <= count);
  auto* ranks = reinterpret_cast<int32_t*>(order);
  int32_t* candidates = ranks + padded(count);
  const Bounds bounds = rank_scores(scores, count, ranks);
  const Threshold threshold = find_threshold(ranks, count, topk, bounds, candidates);
  write_positions(ranks, threshold, topk, positions);
}

}  // namespace ingot::kernels
