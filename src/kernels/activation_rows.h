#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/activations.h"
#include "kernels/dot_reference.h"
#include "tensor/float16.h"

namespace ingot::kernels {

// Readers of one encoded row of activations, a type for each ActivationType, made from
// (activations, row); the number at k is value(k) * block_scale(k of its block).

template <ActivationType kTheType, typename T>
struct PlainActivationRow : PlainValues<T> {
  static constexpr ActivationType kType = kTheType;
  PlainActivationRow(const Activations& x, int64_t row)
      : PlainValues<T>{static_cast<const T*>(x.data) + row * x.cols} {}
};

using F32ActivationRow = PlainActivationRow<ActivationType::kF32, float>;
using BF16ActivationRow = PlainActivationRow<ActivationType::kBF16, tensor::BFloat16>;

struct Int8ActivationRow {
  static constexpr ActivationType kType = ActivationType::kInt8;
  Int8ActivationRow(const Activations& x, int64_t row)
      : blocks(reinterpret_cast<const Int8Block*>(static_cast<const std::byte*>(x.data) +
                                                  row * activation_row_bytes(kType, x.cols))) {}

  float value(int64_t k) const {
    return static_cast<float>(blocks[k / kInt8BlockValues].values[k % kInt8BlockValues]);
  }
  float block_scale(int64_t k) const { return blocks[k / kInt8BlockValues].scale; }

  const Int8Block* blocks;
};

}  // namespace ingot::kernels
