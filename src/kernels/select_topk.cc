#include "kernels/select_topk.h"

#include <algorithm>
#include <bit>

#include "base/check.h"

namespace ingot::kernels {

void select_topk_reference(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                           int32_t* positions) {
  CHECK(0 < topk && topk <= count);
  for (int64_t t = 0; t < count; ++t) {
    // Floats as unsigned words in the same order; adding zero makes the two zeros one.
    const uint32_t bits = std::bit_cast<uint32_t>(scores[t] + 0.0f);
    const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    order[t] = static_cast<uint64_t>(~ascending) << 32 | static_cast<uint64_t>(t);
  }
  std::nth_element(order, order + topk - 1, order + count);
  for (int64_t i = 0; i < topk; ++i) positions[i] = static_cast<int32_t>(order[i] & 0xFFFFFFFF);
  std::sort(positions, positions + topk);
}

}  // namespace ingot::kernels
