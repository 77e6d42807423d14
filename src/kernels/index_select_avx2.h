#pragma once

#include "base/thread_team.h"
#include "kernels/index_select.h"

namespace ingot::kernels {

// What one row's queries may come to, heads filled up to sixteens; and the longest key.
inline constexpr int64_t kIndexQueryFloatsMaxAvx2 = 128 * 128;
inline constexpr int64_t kIndexDimMaxAvx2 = 256;

// The scores of one row for the keys at `keys`, at scores[keys.begin] and on; by type of key.
//
// Order of summation: a head's product has one f32 accumulator, k ascending. Eight lanes take heads
// lane, lane + 8, ..., ascending, and are added pairwise at the end.
void score_keys_f32_avx2(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                         float* scores);
void score_keys_bf16_avx2(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                          float* scores);

}  // namespace ingot::kernels
