#pragma once

#include <cstdint>

namespace ingot::base {

// Half-open range of indices.
struct IndexRange {
  int64_t begin = 0;
  int64_t end = 0;
};

// Member `member`'s contiguous share of `count` indices among `size` members, cut at multiples of
// `grain` so that neighbours never share a tile. Shares cover every index once; some may be empty.
IndexRange share_of(int64_t count, int member, int size, int64_t grain = 1);

}  // namespace ingot::base
