#include "kernels/probe_avx2.h"

#include <immintrin.h>

namespace ingot::kernels {
namespace {

// Loops over the sums are unrolled, or these would stay in memory.

// Hides where a value comes from, so that nothing computed from it moves out of a loop.
inline void hide(__m256& value) { asm volatile("" : "+x"(value)); }
inline void hide(__m256i& value) { asm volatile("" : "+x"(value)); }

}  // namespace

void multiply_f32_avx2(int64_t rounds) {
  __m256 sums[12];
#pragma GCC unroll 32
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  __m256 x = _mm256_set1_ps(0.5f);
  __m256 w = _mm256_set1_ps(0.25f);
  for (int64_t round = 0; round < rounds; ++round) {
    hide(x);
    hide(w);
#pragma GCC unroll 32
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(x, w, sum);
  }
#pragma GCC unroll 32
  for (__m256& sum : sums) hide(sum);
}

void multiply_int8_avx2(int64_t rounds) {
  __m256i sums[4];
#pragma GCC unroll 32
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  __m256i weights[4];
#pragma GCC unroll 32
  for (__m256i& weight : weights) weight = _mm256_set1_epi8(12);
  __m256i x = _mm256_set1_epi8(3);
  const __m256i ones = _mm256_set1_epi16(1);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 32
    for (__m256i& sum : sums) {
      hide(x);
      __m256i narrow = _mm256_maddubs_epi16(weights[0], x);
#pragma GCC unroll 32
      for (int part = 1; part < 4; ++part) {
        narrow = _mm256_add_epi16(narrow, _mm256_maddubs_epi16(weights[part], x));
        hide(narrow);
      }
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(narrow, ones));
    }
#pragma GCC unroll 32
    for (__m256i& weight : weights) hide(weight);
  }
#pragma GCC unroll 32
  for (__m256i& sum : sums) hide(sum);
}

void read_avx2(const std::byte* data, int64_t size_bytes) {
  // Several streams at once: one alone leaves memory waiting for the prefetchers.
  constexpr int kStreams = 4;
  __m256i sums[8];
#pragma GCC unroll 8
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  const int64_t part = size_bytes / kStreams;
  for (int64_t i = 0; i < part; i += 256) {
#pragma GCC unroll 4
    for (int stream = 0; stream < kStreams; ++stream) {
      const auto* vectors = reinterpret_cast<const __m256i*>(data + stream * part + i);
#pragma GCC unroll 8
      for (int k = 0; k < 8; ++k) {
        sums[k] = _mm256_xor_si256(sums[k], _mm256_load_si256(vectors + k));
      }
    }
  }
#pragma GCC unroll 8
  for (__m256i& sum : sums) hide(sum);
}

}  // namespace ingot::kernels
