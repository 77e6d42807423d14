#include <immintrin.h>

#include <cstring>

#include "kernels/e4m3_avx2.h"
#include "kernels/lanes_avx2.h"
#include "kernels/paged_cache.h"

namespace ingot::kernels {
namespace {

// Eight values from `values` on, with zeros beyond `count`.
inline __m256 load_up_to(const float* values, int64_t count) {
  if (count >= 8) return _mm256_loadu_ps(values);
  alignas(32) float padded[8] = {};
  std::memcpy(padded, values, static_cast<size_t>(count) * sizeof(float));
  return _mm256_load_ps(padded);
}

void store_bf16(const float* values, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; i += 8) {
    const __m128i rounded = BF16Lanes::rounded(load_up_to(values + i, count - i));
    std::memcpy(out + 2 * i, &rounded, count - i < 8 ? static_cast<size_t>(count - i) * 2 : 16);
  }
}

// The bits of the largest magnitude; those of NaN and infinity are the largest.
inline uint32_t magnitude_max_bits(const float* values, int64_t count) {
  __m256i max = _mm256_setzero_si256();
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 magnitudes = magnitude_of(load_up_to(values + i, count - i));
    max = _mm256_max_epi32(max, _mm256_castps_si256(magnitudes));
  }
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(max), _mm256_extracti128_si256(max, 1));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b01001110));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 0b10110001));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(four));
}

// One group of latents; returns its scale.
float store_group(const float* values, int64_t count, std::byte* codes) {
  const uint32_t largest_bits = magnitude_max_bits(values, count);
  const bool finite = largest_bits < 0x7F800000;
  float largest;
  std::memcpy(&largest, &largest_bits, sizeof largest);
  const float scale = finite ? largest / 448 : __builtin_nanf("");
  if (!(scale > 0)) {
    std::memset(codes, 0, static_cast<size_t>(count));
    return scale;
  }
  const __m256 divisor = _mm256_set1_ps(scale);
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 quotients = _mm256_div_ps(load_up_to(values + i, count - i), divisor);
    const uint64_t packed = pack_codes(round_to_e4m3(quotients).codes, quotients);
    std::memcpy(codes + i, &packed, count - i < 8 ? static_cast<size_t>(count - i) : 8);
  }
  return scale;
}

}  // namespace

void store_bf16_row_avx2(const CacheView& cache, int64_t cache_row, const float* values) {
  store_bf16(values, cache.width,
             static_cast<std::byte*>(cache.data) + cache_row * cache.width * 2);
}

void store_fp8_row_avx2(const CacheView& cache, int64_t cache_row, const float* values) {
  const Fp8CacheRowLayout layout = fp8_cache_row_layout(cache.width, cache.latent_dim);
  std::byte* row = static_cast<std::byte*>(cache.data) + cache_row * layout.size;
  for (int64_t first = 0; first < cache.latent_dim; first += kFp8CacheGroup) {
    const int64_t left = cache.latent_dim - first;
    const float scale =
        store_group(values + first, left < kFp8CacheGroup ? left : kFp8CacheGroup, row + first);
    std::memcpy(row + layout.scales + first / kFp8CacheGroup * 4, &scale, sizeof scale);
  }
  store_bf16(values + cache.latent_dim, cache.width - cache.latent_dim, row + layout.rope);
}

}  // namespace ingot::kernels
