#include <immintrin.h>

#include "kernels/exp_avx2.h"
#include "kernels/route.h"

namespace ingot::kernels {
namespace {

inline __m256 sigmoid_lanes(__m256 x) {
  const __m256 negative = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));
  const __m256 one = _mm256_set1_ps(1);
  return _mm256_div_ps(one, _mm256_add_ps(one, exp_lanes(negative)));
}

// Lanes below `count`.
inline __m256i lanes_below(int64_t count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

}  // namespace

void affinities_avx2(const float* bias, int64_t count, float* affinities, float* choices) {
  int64_t e = 0;
  for (; e + 8 <= count; e += 8) {
    const __m256 affinity = sigmoid_lanes(_mm256_loadu_ps(affinities + e));
    _mm256_storeu_ps(affinities + e, affinity);
    _mm256_storeu_ps(choices + e, _mm256_add_ps(affinity, _mm256_loadu_ps(bias + e)));
  }
  if (e < count) {
    const __m256i rest = lanes_below(count - e);
    const __m256 affinity = sigmoid_lanes(_mm256_maskload_ps(affinities + e, rest));
    _mm256_maskstore_ps(affinities + e, rest, affinity);
    _mm256_maskstore_ps(choices + e, rest,
                        _mm256_add_ps(affinity, _mm256_maskload_ps(bias + e, rest)));
  }
}

int64_t argmax_avx2(const float* values, int64_t count) {
  const __m256 excluded = _mm256_set1_ps(-__builtin_inff());
  __m256 best = excluded;
  __m256i best_index = _mm256_setzero_si256();
  __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const auto take = [&](__m256 candidates) {
    const __m256 better = _mm256_cmp_ps(candidates, best, _CMP_GT_OQ);  // never where NaN
    best = _mm256_blendv_ps(best, candidates, better);
    best_index = _mm256_blendv_epi8(best_index, index, _mm256_castps_si256(better));
    index = _mm256_add_epi32(index, _mm256_set1_epi32(8));
  };
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) take(_mm256_loadu_ps(values + i));
  if (i < count) {
    const __m256i rest = lanes_below(count - i);
    take(_mm256_blendv_ps(excluded, _mm256_maskload_ps(values + i, rest),
                          _mm256_castsi256_ps(rest)));
  }
  alignas(32) float best_of[8];
  alignas(32) int32_t index_of[8];
  _mm256_store_ps(best_of, best);
  _mm256_store_si256(reinterpret_cast<__m256i*>(index_of), best_index);
  int lane = 0;
  for (int other = 1; other < 8; ++other) {
    const bool wins = best_of[other] > best_of[lane] ||
                      (best_of[other] == best_of[lane] && index_of[other] < index_of[lane]);
    if (wins) lane = other;
  }
  return index_of[lane];
}

}  // namespace ingot::kernels
