#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace ingot::kernels {

// Values that need no scale, as f32: the plainest of the readers that dot_reference takes.
template <typename T>
struct PlainValues {
  float value(int64_t k) const { return tensor::to_f32(values[k]); }
  static float block_scale(int64_t) { return 1; }
  static float row_scale() { return 1; }

  const T* values;
};

inline constexpr int64_t kDotBlockValues = 32;

// The reference order of summation, used by every reference kernel: one f32 accumulator, K
// ascending in blocks of 32. Inside a block, eight lanes take k = lane, lane + 8, lane + 16, lane +
// 24 and are then added pairwise; a last partial block counts as padded with zeros. A block's sum
// is multiplied by the block's scales, the weight's first, and the whole by the weight row's.
inline float add_lanes(const float (&lane)[8]) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

// W and A read a row each: value(k), block_scale(k) of the block that starts at k, and of the
// weight row_scale().
template <typename W, typename A>
inline float dot_reference(const W& w, const A& a, int64_t count) {
  float sum = 0;
  int64_t k = 0;
  for (; k + kDotBlockValues <= count; k += kDotBlockValues) {
    float lane[8] = {};
    for (int64_t step = k; step < k + kDotBlockValues; step += 8) {
      for (int64_t l = 0; l < 8; ++l) lane[l] += w.value(step + l) * a.value(step + l);
    }
    sum += add_lanes(lane) * w.block_scale(k) * a.block_scale(k);
  }
  if (k < count) {
    float lane[8] = {};
    for (int64_t j = 0; k + j < count; ++j) lane[j % 8] += w.value(k + j) * a.value(k + j);
    sum += add_lanes(lane) * w.block_scale(k) * a.block_scale(k);
  }
  return sum * w.row_scale();
}

}  // namespace ingot::kernels
