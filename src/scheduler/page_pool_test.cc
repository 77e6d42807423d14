#include "scheduler/page_pool.h"

#include <gtest/gtest.h>

namespace ingot::scheduler {
namespace {

TEST(PagePool, HandsOutEveryPageOnceTheLowestFirst) {
  PagePool pool(5);
  EXPECT_EQ(pool.num_pages(), 5);
  for (int32_t page = 0; page < 5; ++page) {
    EXPECT_EQ(pool.num_free(), 5 - page);
    EXPECT_TRUE(pool.is_free(page));
    EXPECT_EQ(pool.allocate(), page);
    EXPECT_FALSE(pool.is_free(page));
  }
  EXPECT_EQ(pool.num_free(), 0);
  EXPECT_EQ(pool.num_pages(), 5);
}

TEST(PagePool, HandsOutThePageThatWasReleasedLast) {
  PagePool pool(4);
  while (pool.num_free() > 0) pool.allocate();
  pool.release(2);
  pool.release(0);
  pool.release(3);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_TRUE(pool.is_free(0));
  EXPECT_FALSE(pool.is_free(1));
  EXPECT_EQ(pool.allocate(), 3);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 2);
}

TEST(PagePool, MayBeEmpty) {
  const PagePool pool(0);
  EXPECT_EQ(pool.num_pages(), 0);
  EXPECT_EQ(pool.num_free(), 0);
}

TEST(PagePoolDeathTest, StopsAtMisuse) {
  PagePool pool(1);
  EXPECT_DEATH(pool.release(0), "released twice");
  EXPECT_DEATH(pool.is_free(1), "CHECK failed");
  EXPECT_DEATH(pool.release(-1), "CHECK failed");
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_DEATH(pool.allocate(), "no page is free");
  EXPECT_DEATH(PagePool(-1), "CHECK failed");
}

}  // namespace
}  // namespace ingot::scheduler
