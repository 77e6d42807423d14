#include "base/grouped.h"

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

TEST(Grouped, ByThrees) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1000), "1,000");
  EXPECT_EQ(grouped(753'329'940'480), "753,329,940,480");
  EXPECT_EQ(grouped(UINT64_MAX), "18,446,744,073,709,551,615");
}

}  // namespace
}  // namespace ingot::base
