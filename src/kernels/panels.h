#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weight.h"

namespace ingot::kernels {

// WeightLayout::kPanels8, the layout that kernels of AVX2 read: a panel is 8 rows, its blocks of 32
// columns stand one after another, and each 32-bit lane of a 32-byte vector belongs to one row, so
// that 8 outputs are summed at once and each in one accumulator. The last panel is filled up with
// rows of zeros, the last block with columns of zeros. A block is
//   f32         32 vectors, one column each
//   f16         32 half vectors of 8 values, one column each
//   bf16        16 vectors, each lane columns (k, k + 1)
//   fp8         8 vectors, each lane columns (k .. k + 3)
//   mxfp4       4 vectors; byte c of a lane has column 8 j + c low and 8 j + 4 + c high
// Scales of fp8_block stay as stored; of fp8_channel they are filled up to whole panels; of mxfp4
// they are [panels, blocks, 8 rows].
inline constexpr int64_t kPanelRows = 8;
inline constexpr int64_t kPanelBlockColumns = 32;

constexpr int64_t num_panels(int64_t rows) { return (rows + kPanelRows - 1) / kPanelRows; }

// Blocks of a row.
constexpr int64_t panel_blocks(int64_t cols) {
  return (cols + kPanelBlockColumns - 1) / kPanelBlockColumns;
}

// Bytes of one block of a panel.
constexpr int64_t panel_block_bytes(WeightFormat format) {
  return weight_data_bytes(format, kPanelRows, kPanelBlockColumns);
}

// Bytes of values and scales as held, in whichever layout.
int64_t held_data_bytes(const Weight& weight);
int64_t held_scale_bytes(const Weight& weight);

// Values of stored rows [first_row, first_row + num_rows) of `packed` into its panels. `rows` is
// what is stored of them, dense.
// REQUIRES: packed.layout == kPanels8; first_row % 8 == 0; num_rows % 8 == 0 unless they are the
// last.
void pack_rows(const void* rows, int64_t first_row, int64_t num_rows, const Weight& packed,
               std::byte* data);

// All scales of a matrix as stored into those of `packed`.
void pack_scales(const void* scales, const Weight& packed, std::byte* out);

}  // namespace ingot::kernels
