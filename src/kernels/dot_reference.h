#pragma once

#include <cstdint>

#include "tensor/float16.h"

namespace ingot::kernels {

// The reference order of summation, used by every reference kernel: one f32 accumulator, K
// ascending in blocks of 32. Inside a block, eight lanes take k = lane, lane + 8, lane + 16, lane +
// 24 and are then added pairwise; a last partial block counts as padded with zeros.
inline float add_lanes(const float (&lane)[8]) {
  return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

template <typename W, typename A>
inline float dot_reference(const W* w, const A* a, int64_t k) {
  using tensor::to_f32;
  float sum = 0;
  int64_t i = 0;
  for (; i + 32 <= k; i += 32) {
    float lane[8] = {};
    for (int step = 0; step < 32; step += 8) {
      for (int l = 0; l < 8; ++l) lane[l] += to_f32(w[i + step + l]) * to_f32(a[i + step + l]);
    }
    sum += add_lanes(lane);
  }
  if (i < k) {
    float lane[8] = {};
    for (int64_t j = 0; i + j < k; ++j) lane[j % 8] += to_f32(w[i + j]) * to_f32(a[i + j]);
    sum += add_lanes(lane);
  }
  return sum;
}

}  // namespace ingot::kernels
