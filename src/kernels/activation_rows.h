#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/dot_reference.h"
#include "kernels/execution_context.h"
#include "tensor/float16.h"

namespace ingot::kernels {

// Readers and writers of one encoded row of activations, a type for each ActivationType. A reader
// is made from (activations, row); the number at k is value(k) * block_scale(k of its block).
// store_block encodes `count` values as those from `first` on of a row of `cols`, where `first`
// is a multiple of 32 and `count` 32 or what is left of the row.

template <ActivationType kTheType, typename T>
struct PlainActivationRow : PlainValues<T> {
  static constexpr ActivationType kType = kTheType;
  PlainActivationRow(const Activations& x, int64_t row)
      : PlainValues<T>{static_cast<const T*>(x.data) + row * x.cols} {}
};

struct F32ActivationRow : PlainActivationRow<ActivationType::kF32, float> {
  using PlainActivationRow::PlainActivationRow;
  static void store_block(void* row, int64_t, int64_t first, const float* values, int64_t count) {
    float* out = static_cast<float*>(row) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = values[i];
  }
};

struct BF16ActivationRow : PlainActivationRow<ActivationType::kBF16, tensor::BFloat16> {
  using PlainActivationRow::PlainActivationRow;
  static void store_block(void* row, int64_t, int64_t first, const float* values, int64_t count) {
    auto* out = static_cast<tensor::BFloat16*>(row) + first;
    for (int64_t i = 0; i < count; ++i) out[i] = tensor::to_bf16(values[i]);
  }
};

struct Int8ActivationRow {
  static constexpr ActivationType kType = ActivationType::kInt8;
  Int8ActivationRow(const Activations& x, int64_t row)
      : blocks(reinterpret_cast<const Int8Block*>(static_cast<const std::byte*>(x.data) +
                                                  row * activation_row_bytes(kType, x.cols))) {}

  float value(int64_t k) const {
    return static_cast<float>(blocks[k / kInt8BlockValues].values[k % kInt8BlockValues]);
  }
  float block_scale(int64_t k) const { return blocks[k / kInt8BlockValues].scale; }

  static void store_block(void* row, int64_t cols, int64_t first, const float* values,
                          int64_t count);

  const Int8Block* blocks;
};

// Encodes rows whose values `compute(row, first, count, out)` gives, block by block. Collective.
template <typename Row, typename Compute>
Activations encode_rows(const ExecutionContext& context, int64_t rows, int64_t cols, void* buffer,
                        const Compute& compute) {
  const int64_t blocks = (cols + kDotBlockValues - 1) / kDotBlockValues;
  const base::IndexRange range = context.share(rows * blocks, 2);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t row = item / blocks;
    const int64_t first = item % blocks * kDotBlockValues;
    const int64_t count = std::min(kDotBlockValues, cols - first);
    float values[kDotBlockValues];
    compute(row, first, count, values);
    Row::store_block(static_cast<std::byte*>(buffer) + row * activation_row_bytes(Row::kType, cols),
                     cols, first, values, count);
  }
  context.barrier();
  return {.type = Row::kType, .rows = rows, .cols = cols, .data = buffer};
}

}  // namespace ingot::kernels
