#include "scheduler/page_run.h"

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::scheduler {
namespace {

PageRun::Page page_of(int32_t number) {
  PageRun::Page page{.tokens = {}, .number = number};
  page.tokens.fill(number * 3);
  return page;
}

PageRun run_of(int32_t num_pages) {
  PageRun run;
  for (int32_t i = 0; i < num_pages; ++i) run.push_back(page_of(i));
  return run;
}

TEST(PageRun, ComparesWholePagesFromItsBegin) {
  const PageRun run = run_of(3);
  std::vector<int32_t> tokens;
  EXPECT_EQ(run.num_common_pages(tokens), 0);
  for (int32_t i = 0; i < 5; ++i) tokens.insert(tokens.end(), kPageTokens, i * 3);
  EXPECT_EQ(run.num_common_pages(tokens), 3);
  const std::span<const int32_t> all = tokens;
  EXPECT_EQ(run.num_common_pages(all.first(3 * kPageTokens)), 3);
  EXPECT_EQ(run.num_common_pages(all.first(3 * kPageTokens - 1)), 2);
  EXPECT_EQ(run.num_common_pages(all.first(kPageTokens - 1)), 0);
  EXPECT_EQ(run.num_common_pages(all.subspan(1)), 0);
  for (const size_t differing : {0u, 15u, 16u, 31u, 32u, 47u}) {
    std::vector<int32_t> other = tokens;
    ++other[differing];
    EXPECT_EQ(run.num_common_pages(other), static_cast<int32_t>(differing) / kPageTokens);
  }
}

TEST(PageRun, TakesItsFrontOut) {
  PageRun run = run_of(100);
  const PageRun front = run.take_front(30);
  ASSERT_EQ(front.size(), 30);
  ASSERT_EQ(run.size(), 70);
  for (int32_t i = 0; i < 100; ++i) {
    const PageRun::Page& page = i < 30 ? front[i] : run[i - 30];
    EXPECT_EQ(page.number, i);
    EXPECT_EQ(page.tokens, page_of(i).tokens);
  }
  EXPECT_TRUE(run.take_front(0).empty());
  EXPECT_EQ(run.take_front(70).size(), 70);
  EXPECT_TRUE(run.empty());
  run.push_back(page_of(7));
  EXPECT_EQ(run[0].number, 7);
}

// Whatever was done to it, it equals a deque and holds little more memory than its pages need.
TEST(PageRun, ChangesAtBothEndsLikeADeque) {
  const base::RandomStream random = base::random_stream(1, "page run");
  PageRun run;
  std::deque<int32_t> deque;
  for (uint64_t i = 0; i < 5000; ++i) {
    // Grows for a while, then shrinks for a while.
    const bool grows = i / 500 % 2 == 0;
    const double draw = random.uniform(i);
    if (draw < (grows ? 0.9 : 0.1) || deque.empty()) {
      run.push_back(page_of(static_cast<int32_t>(i)));
      deque.push_back(static_cast<int32_t>(i));
    } else if (draw < 0.95) {
      run.pop_back();
      deque.pop_back();
    } else {
      run.drop_front(1);
      deque.pop_front();
    }
    ASSERT_EQ(run.size(), static_cast<int32_t>(deque.size()));
    for (int32_t at = 0; at < run.size(); at += 1 + run.size() / 5) {
      ASSERT_EQ(run[at].number, deque[static_cast<size_t>(at)]);
    }
    const auto page_bytes = static_cast<int64_t>(sizeof(PageRun::Page));
    ASSERT_LE(run.memory_bytes(), (run.size() + run.size() / 4 + 4) * page_bytes);
  }
}

TEST(PageRunDeathTest, StopsAtMisuse) {
  PageRun run = run_of(1);
  EXPECT_DEATH(run.drop_front(2), "CHECK failed");
  EXPECT_DEATH(run.take_front(-1), "CHECK failed");
  run.pop_back();
  EXPECT_DEATH(run.pop_back(), "CHECK failed");
}

}  // namespace
}  // namespace ingot::scheduler
