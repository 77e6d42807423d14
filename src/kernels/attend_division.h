#pragma once

#include <cstdint>

#include "base/index_range.h"
#include "kernels/mla_attend.h"

namespace ingot::kernels {

// How a team divides attention among its members. Heads are cut into groups and the batch's rows
// into tiles; a member has one group of heads, and for that every so many tiles. Results do not
// depend on it: it decides who computes, and for how many rows a part of kv_b is read once.
struct AttendDivision {
  int64_t groups = 1;     // of heads, as even as can be
  int64_t sets = 1;       // of tiles; groups * sets <= the team's size
  int64_t tile_rows = 1;  // at most kAttendTileRows

  // A member's heads; empty for members beyond groups * sets.
  base::IndexRange heads(int member, int64_t num_heads) const;
  // Tiles are dealt out there and back, 0 1 2 2 1 0 0 1 ..: later rows have more keys.
  bool owns(int member, int64_t tile) const;
  int64_t num_tiles(int64_t rows) const { return (rows + tile_rows - 1) / tile_rows; }
};

// The division whose busiest member has least to do. head_overhead: what a row costs a member
// beside its heads, in the time of so many heads.
AttendDivision divide_attention(const MlaAttendArgs& args, int team_size, double head_overhead);

}  // namespace ingot::kernels
