#include "soak/memory_trend.h"

#include <gtest/gtest.h>

namespace ingot::soak {
namespace {

TEST(MemoryTrend, IsBlindToSingleMoments) {
  MemoryTrend trend;
  for (uint64_t i = 0; i < 30; ++i) trend.add(100'000'000 + (i % 7 == 3 ? 50'000'000 : i % 3));
  EXPECT_LT(trend.growth_bytes(), 10);
  EXPECT_GT(trend.growth_bytes(), -10);
}

TEST(MemoryTrend, SeesASlowLeak) {
  MemoryTrend trend;
  for (uint64_t i = 0; i < 300; ++i) trend.add(100'000'000 + i * 50'000);
  EXPECT_EQ(trend.growth_bytes(), 10'000'000);
}

TEST(MemoryTrend, SaysNothingOfAFewMoments) {
  MemoryTrend trend;
  for (uint64_t i = 0; i < 8; ++i) trend.add(i * 50'000'000);
  EXPECT_EQ(trend.growth_bytes(), 0);
}

}  // namespace
}  // namespace ingot::soak
