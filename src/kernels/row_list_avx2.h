#pragma once

#include "kernels/activations.h"

namespace ingot::kernels {
// What the products of panels take; without a name, as in panels_avx2.h.
namespace {

// Encoded rows somewhere in memory: row i is number index[i] / divisor, or i without an index.
struct RowList {
  const std::byte* data = nullptr;
  int64_t row_bytes = 0;
  const int32_t* index = nullptr;
  int64_t divisor = 1;

  const std::byte* row(int64_t i) const {
    return data + (index == nullptr ? i : index[i] / divisor) * row_bytes;
  }
  RowList from(int64_t first) const {
    if (index == nullptr) return {data + first * row_bytes, row_bytes, nullptr, 1};
    return {data, row_bytes, index + first, divisor};
  }
};

inline RowList rows_of(const Activations& x) {
  return {static_cast<const std::byte*>(x.data), activation_row_bytes(x.type, x.cols), nullptr, 1};
}

// Rows that a product takes at once.
inline constexpr int64_t kProductRows = 96;
}  // namespace
}  // namespace ingot::kernels
