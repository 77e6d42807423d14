#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/execution_context.h"

namespace ingot::kernels {

// The type in which the input of a linear layer is multiplied. Sums are f32 always.
enum class ActivationType : uint8_t { kF32, kBF16 };

constexpr std::string_view name(ActivationType type) {
  return type == ActivationType::kF32 ? "f32" : "bf16";
}

// Rows of activations, encoded: [rows, cols], dense. A plain value.
struct Activations {
  ActivationType type = ActivationType::kF32;
  int64_t rows = 0;
  int64_t cols = 0;
  const void* data = nullptr;
};

// Bytes of one encoded row of `cols` values.
constexpr int64_t activation_row_bytes(ActivationType type, int64_t cols) {
  return cols * (type == ActivationType::kF32 ? 4 : 2);
}

// Encodes x [rows, cols] f32, rounding to nearest even. kF32 copies nothing: the result views `x`.
// Otherwise it views `buffer` of rows x activation_row_bytes. Collective.
Activations encode_activations(const ExecutionContext& context, const float* x, int64_t rows,
                               int64_t cols, ActivationType type, void* buffer);

}  // namespace ingot::kernels
