#include "base/index_range.h"

#include <algorithm>
#include <cstdint>

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

void expect_cover(int64_t count, int size, int64_t grain) {
  int64_t next = 0;
  int64_t tiles_min = count;
  int64_t tiles_max = 0;
  for (int member = 0; member < size; ++member) {
    const IndexRange share = share_of(count, member, size, grain);
    ASSERT_EQ(share.begin, next) << count << " " << member << "/" << size << " by " << grain;
    ASSERT_LE(share.begin, share.end);
    ASSERT_TRUE(share.begin % grain == 0 || share.begin == count);
    const int64_t tiles = (share.end - share.begin + grain - 1) / grain;
    tiles_min = std::min(tiles_min, tiles);
    tiles_max = std::max(tiles_max, tiles);
    next = share.end;
  }
  ASSERT_EQ(next, count);
  ASSERT_LE(tiles_max - tiles_min, 1) << "nobody has two tiles more than another";
}

TEST(ShareOf, CoversEveryIndexOnce) {
  for (const int64_t count : {0, 1, 2, 3, 7, 8, 16, 31, 32, 33, 100, 257, 1024, 6144}) {
    for (int size = 1; size <= 17; ++size) {
      for (const int64_t grain : {1, 2, 3, 16, 32, 1000}) expect_cover(count, size, grain);
    }
  }
  expect_cover(int64_t{1} << 60, 192, 64);
}

}  // namespace
}  // namespace ingot::base
