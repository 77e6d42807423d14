#include "kernels/probe_avx512.h"

#include <immintrin.h>

namespace ingot::kernels {
namespace {

// Enough sums to fill two units of four cycles and more, and few enough for 32 registers.
constexpr int kSums = 24;

// Hides where a value comes from, so that nothing computed from it moves out of a loop.
template <typename V>
inline void hide(V& value) {
  asm volatile("" : "+v"(value));
}

}  // namespace

void multiply_f32_avx512(int64_t rounds) {
  __m512 sums[kSums];
#pragma GCC unroll 32
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512 x = _mm512_set1_ps(0.5f);
  __m512 w = _mm512_set1_ps(0.25f);
  for (int64_t round = 0; round < rounds; ++round) {
    hide(x);
    hide(w);
#pragma GCC unroll 32
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(x, w, sum);
  }
#pragma GCC unroll 32
  for (__m512& sum : sums) hide(sum);
}

void multiply_int8_avx512(int64_t rounds) {
  __m512i sums[kSums];
#pragma GCC unroll 32
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  __m512i x = _mm512_set1_epi8(3);
  __m512i w = _mm512_set1_epi8(12);
  for (int64_t round = 0; round < rounds; ++round) {
    hide(x);
    hide(w);
#pragma GCC unroll 32
    for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, w, x);
  }
#pragma GCC unroll 32
  for (__m512i& sum : sums) hide(sum);
}

bool has_bf16_avx512() { return __builtin_cpu_supports("avx512bf16") != 0; }

// The only function here that may use more than the level that the file is compiled for.
__attribute__((target("avx512bf16"))) void multiply_bf16_avx512(int64_t rounds) {
  __m512 sums[kSums];
#pragma GCC unroll 32
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  __m512i x = _mm512_set1_epi16(0x3F00);
  __m512i w = _mm512_set1_epi16(0x3E80);
  for (int64_t round = 0; round < rounds; ++round) {
    hide(x);
    hide(w);
#pragma GCC unroll 32
    for (__m512& sum : sums) {
      sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh&>(w), reinterpret_cast<__m512bh&>(x));
    }
  }
#pragma GCC unroll 32
  for (__m512& sum : sums) hide(sum);
}

}  // namespace ingot::kernels
