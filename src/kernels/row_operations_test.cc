#include "kernels/row_operations.h"

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

TEST(RowOperations, AreTheFastestThatTheTargetAllows) {
  for (const Target target : built_targets()) EXPECT_EQ(row_operations(target).target, target);
  EXPECT_EQ(row_operations(Target::kAvx512).target, all_row_operations().front().target);
  EXPECT_EQ(all_row_operations().back().target, Target::kReference);
}

}  // namespace
}  // namespace ingot::kernels
