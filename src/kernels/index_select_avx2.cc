#include "kernels/index_select_avx2.h"

#include <immintrin.h>

#include <cstring>

#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

// One tile of registers: 2 x 6 accumulators, beside two vectors of queries and one of a key.
constexpr int64_t kGroupHeads = 16;
constexpr int64_t kTileKeys = 6;

// A row's queries with heads in lanes. Heads beyond the last have queries and gates of zero.
struct Queries {
  alignas(32) float q[kIndexQueryFloatsMaxAvx2];  // [groups, dim, kGroupHeads]
  alignas(32) float gates[kIndexQueryFloatsMaxAvx2 / 8];
  int64_t groups;
  int64_t dim;
};

void load_queries(const IndexSelectArgs& args, int64_t row, Queries& queries) {
  const float* q = args.q + row * args.heads * args.dim;
  const float* gates = args.gates + row * args.heads;
  queries.dim = args.dim;
  queries.groups = (args.heads + kGroupHeads - 1) / kGroupHeads;
  for (int64_t head = 0; head < queries.groups * kGroupHeads; ++head) {
    const bool present = head < args.heads;
    queries.gates[head] = present ? gates[head] : 0;
    float* out = queries.q + head / kGroupHeads * args.dim * kGroupHeads + head % kGroupHeads;
    for (int64_t k = 0; k < args.dim; ++k) {
      out[k * kGroupHeads] = present ? q[head * args.dim + k] : 0;
    }
  }
}

inline float add_lanes(__m256 v) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// Sums of gate * relu(q . key) of kTileKeys keys, dim apart, to which sixteen heads are added.
inline void add_group(const float* q, const float* gates, const float* keys, int64_t dim,
                      __m256 (&sums)[kTileKeys]) {
  __m256 low[kTileKeys];
  __m256 high[kTileKeys];
#pragma GCC unroll 6
  for (int64_t key = 0; key < kTileKeys; ++key) low[key] = high[key] = _mm256_setzero_ps();
  for (int64_t k = 0; k < dim; ++k) {
    const __m256 q_low = _mm256_load_ps(q + k * kGroupHeads);
    const __m256 q_high = _mm256_load_ps(q + k * kGroupHeads + 8);
#pragma GCC unroll 6
    for (int64_t key = 0; key < kTileKeys; ++key) {
      const __m256 value = _mm256_broadcast_ss(keys + key * dim + k);
      low[key] = _mm256_fmadd_ps(q_low, value, low[key]);
      high[key] = _mm256_fmadd_ps(q_high, value, high[key]);
    }
  }
  const __m256 zero = _mm256_setzero_ps();
  const __m256 gates_low = _mm256_load_ps(gates);
  const __m256 gates_high = _mm256_load_ps(gates + 8);
#pragma GCC unroll 6
  for (int64_t key = 0; key < kTileKeys; ++key) {
    // The order of operands makes zero of NaN, as the reference does.
    sums[key] = _mm256_fmadd_ps(gates_low, _mm256_max_ps(low[key], zero), sums[key]);
    sums[key] = _mm256_fmadd_ps(gates_high, _mm256_max_ps(high[key], zero), sums[key]);
  }
}

template <typename T>
void score_keys(const IndexSelectArgs& args, int64_t row, base::IndexRange keys, float* scores) {
  const int64_t dim = args.dim;
  const auto* cache = static_cast<const typename T::Element*>(args.keys.data);
  Queries queries;
  load_queries(args, row, queries);
  alignas(32) float tile[kTileKeys * kIndexDimMaxAvx2];
  std::memset(tile, 0, sizeof tile);  // a last tile may have fewer keys; theirs are never read
  for (int64_t first = keys.begin; first < keys.end; first += kTileKeys) {
    const int64_t count = keys.end - first < kTileKeys ? keys.end - first : kTileKeys;
    for (int64_t key = 0; key < count; ++key) {
      const auto* stored = cache + args.rows.cache_row(row, first + key) * dim;
      float* values = tile + key * dim;
      int64_t k = 0;
      for (; k + 8 <= dim; k += 8) _mm256_storeu_ps(values + k, T::load(stored + k));
      for (; k < dim; ++k) values[k] = T::one(stored[k]);
    }
    __m256 sums[kTileKeys];
    for (__m256& sum : sums) sum = _mm256_setzero_ps();
    for (int64_t group = 0; group < queries.groups; ++group) {
      add_group(queries.q + group * dim * kGroupHeads, queries.gates + group * kGroupHeads, tile,
                dim, sums);
    }
    for (int64_t key = 0; key < count; ++key) scores[first + key] = add_lanes(sums[key]);
  }
}

}  // namespace

void score_keys_f32_avx2(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                         float* scores) {
  score_keys<F32Lanes>(args, row, keys, scores);
}

void score_keys_bf16_avx2(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                          float* scores) {
  score_keys<BF16Lanes>(args, row, keys, scores);
}

}  // namespace ingot::kernels
