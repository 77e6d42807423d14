#include <immintrin.h>

#include <cstring>

#include "kernels/activations.h"
#include "kernels/encode_avx2.h"
#include "kernels/exp_avx2.h"

namespace ingot::kernels {
namespace {

inline void load_block(const float* values, __m256 (&block)[4]) {
  for (int i = 0; i < 4; ++i) block[i] = _mm256_loadu_ps(values + 8 * i);
}

// The last values of a row, with zeros behind them; 0 < count < 32.
inline void load_rest(const float* values, int64_t count, __m256 (&block)[4]) {
  alignas(32) float padded[kInt8BlockValues] = {};
  std::memcpy(padded, values, static_cast<size_t>(count) * sizeof(float));
  load_block(padded, block);
}

}  // namespace

void encode_bf16_avx2(const float* values, int64_t count, std::byte* out) {
  __m256 block[4];
  int64_t i = 0;
  for (; i + kInt8BlockValues <= count; i += kInt8BlockValues) {
    load_block(values + i, block);
    BF16Encoder::store(block, out + 2 * i);
  }
  if (i < count) {
    std::byte encoded[BF16Encoder::kBlockBytes];
    load_rest(values + i, count - i, block);
    BF16Encoder::store(block, encoded);
    std::memcpy(out + 2 * i, encoded, static_cast<size_t>(count - i) * 2);
  }
}

void encode_int8_avx2(const float* values, int64_t count, std::byte* out) {
  __m256 block[4];
  int64_t i = 0;
  for (; i + kInt8BlockValues <= count; i += kInt8BlockValues, out += sizeof(Int8Block)) {
    load_block(values + i, block);
    Int8Encoder::store(block, out);
  }
  if (i < count) {
    load_rest(values + i, count - i, block);
    Int8Encoder::store(block, out);
  }
}

void silu_multiply_row_avx2(const float* gate, const float* up, int64_t count, float* out) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256 activated = silu_lanes(_mm256_loadu_ps(gate + i));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(activated, _mm256_loadu_ps(up + i)));
  }
  if (i < count) {
    const __m256i rest = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count - i)),
                                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    const __m256 activated = silu_lanes(_mm256_maskload_ps(gate + i, rest));
    _mm256_maskstore_ps(out + i, rest, _mm256_mul_ps(activated, _mm256_maskload_ps(up + i, rest)));
  }
}

}  // namespace ingot::kernels
