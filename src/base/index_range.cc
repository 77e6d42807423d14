#include "base/index_range.h"

#include <algorithm>

namespace ingot::base {

IndexRange share_of(int64_t count, int member, int size, int64_t grain) {
  const int64_t tiles = (count + grain - 1) / grain;
  const int64_t base = tiles / size;
  const int64_t extra = tiles % size;
  const int64_t first = member * base + std::min<int64_t>(member, extra);
  const int64_t last = first + base + (member < extra ? 1 : 0);
  return {std::min(first * grain, count), std::min(last * grain, count)};
}

}  // namespace ingot::base
