#include "scheduler/depth_search.h"

#include <array>
#include <optional>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::scheduler {
namespace {

TEST(RecentMedian, IsTheMiddleOfTheLastNine) {
  RecentMedian median;
  EXPECT_EQ(median.size(), 0);
  median.add(5);
  EXPECT_EQ(median.value(), 5);
  median.add(1);
  EXPECT_EQ(median.value(), 3);
  median.add(100);
  EXPECT_EQ(median.value(), 5);
  for (const double value : {8, 7, 6, 5, 4, 3, 2, 1, 0}) median.add(value);
  EXPECT_EQ(median.value(), 4);
  EXPECT_EQ(median.size(), 9);
  for (int32_t i = 0; i < 1000; ++i) {
    median.add(i);
    EXPECT_EQ(median.size(), 9);
  }
  EXPECT_EQ(median.value(), 995);
  median.clear();
  median.add(2);
  EXPECT_EQ(median.value(), 2);
}

TEST(RecentMedian, SingleSlowStepsDoNotCount) {
  RecentMedian median;
  for (int32_t i = 0; i < 90; ++i) {
    median.add(i % 3 == 0 ? 1000 : 1);
    if (i < 8) continue;
    EXPECT_EQ(median.value(), 1);
  }
}

// Steps of given times, with drafts that are all accepted as often as one can hope.
class DepthSearchTest : public testing::Test {
 protected:
  void observe(DepthSearch& search, int32_t depth, double seconds) {
    const std::vector<int32_t> drafted(static_cast<size_t>(depth), 10);
    search.observe(depth, seconds, 10, drafted, acceptance_);
  }
  void step(DepthSearch& search, const std::vector<double>& seconds) {
    const int32_t depth = search.next_depth();
    observe(search, depth, seconds[static_cast<size_t>(depth)]);
  }

  DraftAcceptance acceptance_{5};  // tokens by depth: 1, 1.8, 2.44, 2.95, 3.36, 3.69
};

TEST_F(DepthSearchTest, ClimbsUntilGoodputFalls) {
  DepthSearch search(5, std::nullopt);
  const std::vector<double> seconds = {1, 1.2, 1.4, 3, 4, 5};
  std::vector<int32_t> depths;
  while (search.is_climbing()) {
    if (depths.empty() || depths.back() != search.next_depth()) {
      depths.push_back(search.next_depth());
    }
    step(search, seconds);
  }
  EXPECT_EQ(depths, (std::vector<int32_t>{0, 1, 2, 3}));
  EXPECT_EQ(search.best_depth(), 2);
  EXPECT_EQ(search.next_depth(), 2);
}

// From a depth known elsewhere, straight to the best.
TEST_F(DepthSearchTest, DescendsFromWhereItIsStarted) {
  DepthSearch search(5, 5);
  EXPECT_FALSE(search.is_climbing());
  const std::vector<double> seconds = {1, 2, 3, 4, 5, 6};
  int32_t num_steps = 0;
  for (; search.best_depth() > 0; ++num_steps) {
    ASSERT_LT(num_steps, 200);
    step(search, seconds);
  }
  EXPECT_LT(num_steps, 130);
}

// A depth beyond one that is no good, in reach of the trials that leave the neighbourhood.
TEST_F(DepthSearchTest, FindsASecondPeak) {
  DepthSearch search(5, 0);
  const std::vector<double> seconds = {1, 3, 4, 1.5, 4, 5};
  int32_t num_steps = 0;
  for (; search.best_depth() != 3; ++num_steps) {
    ASSERT_LT(num_steps, 5000);
    step(search, seconds);
  }
  for (int32_t i = 0; i < 1000; ++i) step(search, seconds);
  EXPECT_EQ(search.best_depth(), 3);
}

TEST_F(DepthSearchTest, ALittleBetterIsNotWorthASwitch) {
  DepthSearch search(1, 0);
  for (int32_t i = 0; i < 100'000; ++i) {
    step(search, {1, 1.8 / 1.02});
    ASSERT_EQ(search.best_depth(), 0);
  }
}

// Each return to a depth that was left takes longer.
TEST_F(DepthSearchTest, GoesBackLessAndLessEasily) {
  DepthSearch search(1, 0);
  std::vector<int32_t> num_steps;
  for (int32_t i = 0; i < 6; ++i) {
    const int32_t before = search.best_depth();
    const std::vector<double> seconds =
        before == 0 ? std::vector<double>{1, 1.8 / 1.2} : std::vector<double>{1, 1.8 * 1.2};
    num_steps.push_back(0);
    for (; search.best_depth() == before; ++num_steps.back()) {
      ASSERT_LT(num_steps.back(), 100'000);
      step(search, seconds);
    }
  }
  EXPECT_LT(num_steps[0], 100);
  EXPECT_GT(num_steps[2], num_steps[0]);
  EXPECT_GT(num_steps[3], num_steps[1]);
  EXPECT_GT(num_steps[5], num_steps[3]);
}

TEST_F(DepthSearchTest, DepthsThatNeverComeOutAreGivenUp) {
  DepthSearch search(5, std::nullopt);
  std::set<int32_t> asked;
  int64_t num_other = 0;
  for (int32_t i = 0; i < 20'000; ++i) {
    const int32_t depth = search.next_depth();
    asked.insert(depth);
    if (i >= 2000 && depth > 1) ++num_other;
    observe(search, depth < 1 ? depth : 1, depth < 1 ? 1 : 1.2);
  }
  EXPECT_EQ(search.best_depth(), 1);
  EXPECT_TRUE(asked.contains(2));
  EXPECT_LT(num_other, 2000);
}

}  // namespace
}  // namespace ingot::scheduler
