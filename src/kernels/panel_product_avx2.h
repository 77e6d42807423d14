#pragma once

#include "kernels/panels_avx2.h"

namespace ingot::kernels {
// Products of encoded rows and panels; see panels_avx2.h for why nothing here has a name outside.
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
                          .num_blocks = weight.cols / kPanelBlockColumns};
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

// Rows that a product takes at once.
inline constexpr int64_t kProductRows = 96;
// Rows of one register tile.
inline constexpr int64_t kTileRows = 6;
// Rows from which a wide format is unpacked into f32 first.
inline constexpr int64_t kUnpackRows = 2 * kTileRows;

// Adds `count` rows to sums [count][kPanels * 8]; `column` is that of the span's first block.
template <typename P, typename X, int kPanels>
inline void multiply_rows(const PanelSpan<kPanels>& span, const RowList& x, int64_t column,
                          int64_t count, float* sums) {
  const int64_t offset = column * X::kColumnBytes;
  const auto tile = [&]<int kRows>(int64_t first) __attribute__((always_inline)) {
    const std::byte* rows[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) rows[r] = x.row(first + r) + offset;
    multiply_tile<P, X, kRows, kPanels>(span, rows, sums + first * kPanels * 8);
  };
  int64_t row = 0;
  for (; row + kTileRows <= count; row += kTileRows) tile.template operator()<kTileRows>(row);
  switch (count - row) {
    case 1:
      return tile.template operator()<1>(row);
    case 2:
      return tile.template operator()<2>(row);
    case 3:
      return tile.template operator()<3>(row);
    case 4:
      return tile.template operator()<4>(row);
    case 5:
      return tile.template operator()<5>(row);
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
    multiply_rows<F32Panel, X, kPanels>(unpacked, x, first * kPanelBlockColumns, count, sums);
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
      multiply_rows<P, X, kPanels>(span_of<P, kPanels>(weight, panel), x, 0, count, sums);
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

// MXFP4 by int8 in integers: a block of 32 products is exact, then scaled and added in f32.
struct IntegerProduct {
  static constexpr WeightFormat kWeight = WeightFormat::kMxfp4;
  static constexpr ActivationType kActivation = ActivationType::kInt8;

  template <typename Emit>
  static void product(const Weight& weight, int64_t first, int64_t num, const RowList& x,
                      int64_t count, const Emit& emit) {
    int64_t row = 0;
    for (; row + 4 <= count; row += 4) tile<4>(weight, first, num, x, row, emit);
    switch (count - row) {
      case 1:
        return tile<1>(weight, first, num, x, row, emit);
      case 2:
        return tile<2>(weight, first, num, x, row, emit);
      case 3:
        return tile<3>(weight, first, num, x, row, emit);
      default:
        return;
    }
  }

 private:
  // Codes as 2 v + 12: unsigned, as the instruction wants one of its factors. Sums of four pairs of
  // products are at most 4 * 2 * 24 * 127 and fit 16 bits.
  [[gnu::always_inline]] static __m256i unsigned_codes(__m256i nibbles) {
    const __m256i table =
        _mm256_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0, 12, 13, 14, 15,
                         16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0);
    return _mm256_shuffle_epi8(table, nibbles);
  }

  [[gnu::always_inline]] static __m256i four_products(const __m256i (&codes)[8], const Int8Block& x,
                                                      int first) {
    const auto one = [&](int i) __attribute__((always_inline)) {
      const auto* word = reinterpret_cast<const float*>(x.values) + i;
      return _mm256_maddubs_epi16(codes[i], _mm256_castps_si256(_mm256_broadcast_ss(word)));
    };
    return _mm256_add_epi16(_mm256_add_epi16(one(first), one(first + 1)),
                            _mm256_add_epi16(one(first + 2), one(first + 3)));
  }

  template <int kRows, typename Emit>
  static void tile(const Weight& weight, int64_t first, int64_t num, const RowList& x, int64_t row,
                   const Emit& emit) {
    const Int8Block* rows[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      rows[r] = reinterpret_cast<const Int8Block*>(x.row(row + r));
    }
    const int64_t blocks = weight.cols / kPanelBlockColumns;
    for (int64_t panel = first; panel < first + num; ++panel) {
      const std::byte* data = static_cast<const std::byte*>(weight.data) + panel * blocks * 128;
      __m256 sum[kRows] = {};
      for (int64_t block = 0; block < blocks; ++block) {
        __m256i codes[8];
#pragma GCC unroll 16
        for (int group = 0; group < 4; ++group) {
          const __m256i bytes = load_bytes(data + block * 128 + group * 32);
          const __m256i low = _mm256_set1_epi8(15);
          codes[group * 2] = unsigned_codes(_mm256_and_si256(bytes, low));
          codes[group * 2 + 1] = unsigned_codes(_mm256_and_si256(_mm256_srli_epi16(bytes, 4), low));
        }
        const __m256 scale = e8m0_of_panel(weight, panel, block);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) add_block(codes, scale, rows[r][block], sum[r]);
      }
      // The codes were doubled.
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        emit(row + r, panel, _mm256_mul_ps(sum[r], _mm256_set1_ps(0.5f)));
      }
    }
  }

  [[gnu::always_inline]] static void add_block(const __m256i (&codes)[8], __m256 scale,
                                               const Int8Block& x, __m256& sum) {
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i dot = _mm256_madd_epi16(four_products(codes, x, 0), ones);
    dot = _mm256_add_epi32(dot, _mm256_madd_epi16(four_products(codes, x, 4), ones));
    dot = _mm256_sub_epi32(dot, _mm256_set1_epi32(x.excess));
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(dot), scale);
    sum = _mm256_fmadd_ps(scaled, _mm256_broadcast_ss(&x.scale), sum);
  }
};

}  // namespace
}  // namespace ingot::kernels
