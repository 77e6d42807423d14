#pragma once

#include <cstring>

#include "kernels/panels_avx2.h"
#include "kernels/row_list_avx2.h"

namespace ingot::kernels {
// Products in f32 of encoded rows and panels; see panels_avx2.h for why nothing here has a name
// outside.
namespace {

// Readers of activations: one value in all lanes, j columns after `row`.
struct F32Input {
  static constexpr ActivationType kType = ActivationType::kF32;
  static constexpr int64_t kColumnBytes = 4;
  template <int j>
  static __m256 lanes(const std::byte* row) {
    return _mm256_broadcast_ss(reinterpret_cast<const float*>(row) + j);
  }
};
struct BF16Input {
  static constexpr ActivationType kType = ActivationType::kBF16;
  static constexpr int64_t kColumnBytes = 2;
  template <int j>
  static __m256 lanes(const std::byte* row) {
    const auto* pair = reinterpret_cast<const float*>(row) + j / 2;
    return bf16_of_pair<j % 2>(_mm256_castps_si256(_mm256_broadcast_ss(pair)));
  }
};

// Panels that are multiplied together, and the span of blocks of them.
template <int kPanels>
struct PanelSpan {
  const Weight* weight;
  const std::byte* data[kPanels];  // each at its first block
  int64_t panel;                   // number of the first one
  int64_t first_block;
  int64_t num_blocks;
};

template <typename P, int kPanels>
inline PanelSpan<kPanels> span_of(const Weight& weight, int64_t panel) {
  PanelSpan<kPanels> span{.weight = &weight,
                          .data = {},
                          .panel = panel,
                          .first_block = 0,
                          .num_blocks = panel_blocks(weight.cols)};
  const int64_t panel_bytes = span.num_blocks * 4 * P::kGroupBytes;
#pragma GCC unroll 16
  for (int p = 0; p < kPanels; ++p) {
    span.data[p] = static_cast<const std::byte*>(weight.data) + (panel + p) * panel_bytes;
  }
  return span;
}

// sums [kRows][kPanels * 8] += the products of kRows rows, which stand at the span's first column.
template <typename P, typename X, int kRows, int kPanels>
inline void multiply_tile(const PanelSpan<kPanels>& span, const std::byte* const (&rows)[kRows],
                          float* sums) {
  __m256 sum[kRows][kPanels];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) sum[r][p] = _mm256_loadu_ps(sums + (r * kPanels + p) * 8);
  }
  for (int64_t block = 0; block < span.num_blocks; ++block) {
    __m256 scale[kPanels] = {};
    if constexpr (P::kScaled) {
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) {
        scale[p] = P::scale(*span.weight, span.panel + p, span.first_block + block);
      }
    }
    for (int64_t group = block * 4; group < block * 4 + 4; ++group) {
      const auto column = [&]<int j>() __attribute__((always_inline)) {
        // What the column before loaded is loaded again: kept, it would push sums out of registers.
        asm volatile("" ::: "memory");
        __m256 w[kPanels];
#pragma GCC unroll 16
        for (int p = 0; p < kPanels; ++p) {
          w[p] = P::template lanes<j>(span.data[p] + group * P::kGroupBytes, scale[p]);
        }
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          const __m256 x = X::template lanes<j>(rows[r] + group * 8 * X::kColumnBytes);
#pragma GCC unroll 16
          for (int p = 0; p < kPanels; ++p) sum[r][p] = _mm256_fmadd_ps(w[p], x, sum[r][p]);
        }
      };
      column.template operator()<0>();
      column.template operator()<1>();
      column.template operator()<2>();
      column.template operator()<3>();
      column.template operator()<4>();
      column.template operator()<5>();
      column.template operator()<6>();
      column.template operator()<7>();
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) _mm256_storeu_ps(sums + (r * kPanels + p) * 8, sum[r][p]);
  }
}

// Rows of one register tile.
inline constexpr int kTileRows = 6;
// Rows from which a wide format is unpacked into f32 first.
inline constexpr int64_t kUnpackRows = 2 * kTileRows;

// The last columns of a tile's rows, filled up with zeros to a whole block.
template <typename X, int kRows>
struct LastBlocks {
  LastBlocks(const std::byte* const (&rows)[kRows], int64_t whole_blocks, int64_t columns) {
    std::memset(values, 0, sizeof values);
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(values[r], rows[r] + whole_blocks * kPanelBlockColumns * X::kColumnBytes,
                  static_cast<size_t>(columns * X::kColumnBytes));
      begins[r] = values[r];
    }
  }
  alignas(32) std::byte values[kRows][kPanelBlockColumns * X::kColumnBytes];
  const std::byte* begins[kRows];
};

// multiply_tile where the rows may end inside the last block of the span.
template <typename P, typename X, int kRows, int kPanels>
inline void multiply_some(const PanelSpan<kPanels>& span, const RowList& x, int64_t first,
                          float* sums) {
  const int64_t column = span.first_block * kPanelBlockColumns;
  const std::byte* rows[kRows];
  for (int r = 0; r < kRows; ++r) rows[r] = x.row(first + r) + column * X::kColumnBytes;
  const int64_t left = span.weight->cols - column;
  PanelSpan<kPanels> part = span;
  if (left < span.num_blocks * kPanelBlockColumns) part.num_blocks = left / kPanelBlockColumns;
  multiply_tile<P, X, kRows, kPanels>(part, rows, sums);
  if (part.num_blocks == span.num_blocks) return;
  const LastBlocks<X, kRows> last(rows, part.num_blocks, left % kPanelBlockColumns);
  for (int p = 0; p < kPanels; ++p) part.data[p] += part.num_blocks * 4 * P::kGroupBytes;
  part.first_block += part.num_blocks;
  part.num_blocks = 1;
  multiply_tile<P, X, kRows, kPanels>(part, last.begins, sums);
}

// Adds `count` rows to sums [count][kPanels * 8].
template <typename P, typename X, int kPanels>
inline void multiply_rows(const PanelSpan<kPanels>& span, const RowList& x, int64_t count,
                          float* sums) {
  int64_t row = 0;
  const auto at = [&](int64_t r) { return sums + r * kPanels * 8; };
  for (; row + kTileRows <= count; row += kTileRows) {
    multiply_some<P, X, kTileRows, kPanels>(span, x, row, at(row));
  }
  switch (count - row) {
    case 1:
      return multiply_some<P, X, 1, kPanels>(span, x, row, at(row));
    case 2:
      return multiply_some<P, X, 2, kPanels>(span, x, row, at(row));
    case 3:
      return multiply_some<P, X, 3, kPanels>(span, x, row, at(row));
    case 4:
      return multiply_some<P, X, 4, kPanels>(span, x, row, at(row));
    case 5:
      return multiply_some<P, X, 5, kPanels>(span, x, row, at(row));
    default:
      return;
  }
}

// Blocks that are unpacked at a time: two panels of them are half of a first-level cache.
inline constexpr int64_t kSlabBlocks = 8;

// One block of a panel as f32, column after column.
template <typename P>
inline void unpack_block(const std::byte* data, __m256 scale, float* out) {
  for (int64_t group = 0; group < 4; ++group) {
    const auto column = [&]<int j>() __attribute__((always_inline)) {
      _mm256_storeu_ps(out + (group * 8 + j) * 8,
                       P::template lanes<j>(data + group * P::kGroupBytes, scale));
    };
    column.template operator()<0>();
    column.template operator()<1>();
    column.template operator()<2>();
    column.template operator()<3>();
    column.template operator()<4>();
    column.template operator()<5>();
    column.template operator()<6>();
    column.template operator()<7>();
  }
}

template <typename P, typename X, int kPanels>
inline void multiply_unpacked(const Weight& weight, int64_t panel, const RowList& x, int64_t count,
                              float* sums) {
  const PanelSpan<kPanels> whole = span_of<P, kPanels>(weight, panel);
  alignas(64) float slab[kPanels][kSlabBlocks * kPanelBlockColumns * 8];
  for (int64_t first = 0; first < whole.num_blocks; first += kSlabBlocks) {
    const int64_t left = whole.num_blocks - first;
    PanelSpan<kPanels> unpacked{.weight = &weight,
                                .data = {},
                                .panel = panel,
                                .first_block = first,
                                .num_blocks = left < kSlabBlocks ? left : kSlabBlocks};
#pragma GCC unroll 16
    for (int p = 0; p < kPanels; ++p) {
      unpacked.data[p] = reinterpret_cast<const std::byte*>(slab[p]);
      for (int64_t block = 0; block < unpacked.num_blocks; ++block) {
        __m256 scale = {};
        if constexpr (P::kScaled) scale = P::scale(weight, panel + p, first + block);
        unpack_block<P>(whole.data[p] + (first + block) * 4 * P::kGroupBytes, scale,
                        slab[p] + block * kPanelBlockColumns * 8);
      }
    }
    multiply_rows<F32Panel, X, kPanels>(unpacked, x, count, sums);
  }
}

// Multiplies in f32. `product` of at most kProductRows rows with `num` panels from `first` on calls
// emit(row, panel, values of 8).
template <typename P, typename X>
struct FloatProduct {
  static constexpr WeightFormat kWeight = P::kFormat;
  static constexpr ActivationType kActivation = X::kType;

  template <typename Emit>
  static void product(const Weight& weight, int64_t first, int64_t num, const RowList& x,
                      int64_t count, const Emit& emit) {
    int64_t panel = first;
    if (count <= 3) {
      for (; panel + 4 <= first + num; panel += 4) some<4>(weight, panel, x, count, emit);
    }
    for (; panel + 2 <= first + num; panel += 2) some<2>(weight, panel, x, count, emit);
    if (panel < first + num) some<1>(weight, panel, x, count, emit);
  }

 private:
  template <int kPanels, typename Emit>
  static void some(const Weight& weight, int64_t panel, const RowList& x, int64_t count,
                   const Emit& emit) {
    alignas(32) float sums[kProductRows * kPanels * 8];
    for (int64_t i = 0; i < count * kPanels; ++i) {
      _mm256_store_ps(sums + i * 8, _mm256_setzero_ps());
    }
    if (P::kWide && count >= kUnpackRows) {
      multiply_unpacked<P, X, kPanels>(weight, panel, x, count, sums);
    } else {
      multiply_rows<P, X, kPanels>(span_of<P, kPanels>(weight, panel), x, count, sums);
    }
    for (int64_t row = 0; row < count; ++row) {
#pragma GCC unroll 16
      for (int p = 0; p < kPanels; ++p) {
        __m256 sum = _mm256_load_ps(sums + (row * kPanels + p) * 8);
        if constexpr (P::kFormat == WeightFormat::kFp8Channel) {
          const auto* scales = static_cast<const float*>(weight.scales);
          sum = _mm256_mul_ps(sum, _mm256_loadu_ps(scales + (panel + p) * kPanelRows));
        }
        emit(row, panel + p, sum);
      }
    }
  }
};

}  // namespace
}  // namespace ingot::kernels
