#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "kernels/execution_context.h"

namespace ingot::kernels {

// The type in which the input of a linear layer is multiplied. Sums are f32 always.
enum class ActivationType : uint8_t {
  kF32,
  kBF16,
  kInt8,  // with an f32 scale per 32 values of a row
};

constexpr std::string_view name(ActivationType type) {
  switch (type) {
    case ActivationType::kF32:
      return "f32";
    case ActivationType::kBF16:
      return "bf16";
    case ActivationType::kInt8:
      return "int8";
  }
  return "";
}

// Rows of activations, encoded: [rows, cols], dense. A plain value. A row of kInt8 is an array of
// Int8Block, the last one filled up with zeros.
struct Activations {
  ActivationType type = ActivationType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const void* data = nullptr;
};

inline constexpr int64_t kInt8BlockValues = 32;

// Value i is values[i] * scale.
struct Int8Block {
  int8_t values[kInt8BlockValues];
  float scale;
  // 12 times the sum of `values`. Kernels hold a code v of MXFP4 as the unsigned number 2 v + 12,
  // and this is what the 12 add to a block's product.
  int32_t excess;
};

constexpr int64_t int8_blocks(int64_t cols) {
  return (cols + kInt8BlockValues - 1) / kInt8BlockValues;
}

// Bytes of one encoded row of `cols` values.
constexpr int64_t activation_row_bytes(ActivationType type, int64_t cols) {
  switch (type) {
    case ActivationType::kF32:
      return cols * 4;
    case ActivationType::kBF16:
      return cols * 2;
    case ActivationType::kInt8:
      return int8_blocks(cols) * static_cast<int64_t>(sizeof(Int8Block));
  }
  return 0;
}

// Bytes of one row in the widest type that is ever copied: f32 is not.
constexpr int64_t encoded_row_bytes_max(int64_t cols) {
  return std::max(activation_row_bytes(ActivationType::kBF16, cols),
                  activation_row_bytes(ActivationType::kInt8, cols));
}

// Encodes x [rows, cols] f32. kF32 copies nothing: the result views `x`. Otherwise it views
// `buffer` of rows x activation_row_bytes, aligned to 4 bytes.
//
// kBF16 rounds to nearest even. kInt8 takes scale = max |x| / 127 of a block and rounds x / scale
// to nearest even, into [-127, 127]; a block of zeros has scale 0, and one that is not finite has
// scale NaN, so that what follows is not finite either. Collective.
Activations encode_activations(const ExecutionContext& context, const float* x, int64_t rows,
                               int64_t cols, ActivationType type, void* buffer);

// Encodes `count` values as the next ones of a row; a last block that they do not fill is filled
// up. All targets give the same bytes.
using EncodeRow = void (*)(const float* values, int64_t count, std::byte* out);
void encode_bf16_reference(const float* values, int64_t count, std::byte* out);
void encode_bf16_avx2(const float* values, int64_t count, std::byte* out);
void encode_int8_reference(const float* values, int64_t count, std::byte* out);
void encode_int8_avx2(const float* values, int64_t count, std::byte* out);

// out = silu(gate) * up, encoded for the layer that reads it. gate, up [rows, cols] f32, dense.
// `gate` is overwritten when the type is f32, else `buffer` is filled. Collective.
Activations silu_multiply(const ExecutionContext& context, float* gate, const float* up,
                          int64_t rows, int64_t cols, ActivationType type, void* buffer);

// out = silu(gate) * up of `count` values; `out` may be `gate`. silu(x) = x / (1 + exp(-x)).
using SiluMultiplyRow = void (*)(const float* gate, const float* up, int64_t count, float* out);
void silu_multiply_row_reference(const float* gate, const float* up, int64_t count, float* out);
void silu_multiply_row_avx2(const float* gate, const float* up, int64_t count, float* out);

}  // namespace ingot::kernels
