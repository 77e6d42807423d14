#pragma once

#include <cstdint>

namespace ingot::kernels {

// Positions of the `topk` largest of `count` scores, ascending; of equal scores the earliest is
// taken, the two zeros are equal, and NaN sorts by its bits, so that no input breaks the order.
// `order` is workspace of `count` words. Every target gives the same positions.
// REQUIRES: 0 < topk <= count.
using SelectTopk = void (*)(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                            int32_t* positions);
void select_topk_reference(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                           int32_t* positions);
void select_topk_avx2(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                      int32_t* positions);

}  // namespace ingot::kernels
