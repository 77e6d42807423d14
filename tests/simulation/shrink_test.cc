#include "simulation/shrink.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "simulation/workload.h"

namespace ingot::simulation {
namespace {

std::vector<RequestPlan> draw_plans(int64_t count) {
  Workload workload(draw_setup(1), count);
  std::vector<RequestPlan> plans;
  while (std::optional<RequestPlan> plan = workload.next()) plans.push_back(*std::move(plan));
  return plans;
}

TEST(Shrink, LeavesTheTwoThatTogetherFail) {
  const std::vector<RequestPlan> plans = draw_plans(200);
  const auto fails = [](const std::vector<RequestPlan>& list) {
    const auto has = [&](scheduler::RequestId id) {
      return std::ranges::any_of(list, [&](const auto& plan) { return plan.request.id == id; });
    };
    return has(31) && has(178);
  };
  const std::vector<RequestPlan> left = shrink(plans, fails, 1000);
  ASSERT_EQ(left.size(), 2u);
  EXPECT_EQ(left[0].request.id, 31u);
  EXPECT_EQ(left[1].request.id, 178u);
  for (const RequestPlan& plan : left) {
    EXPECT_EQ(plan.request.prompt.size(), 1u);
    EXPECT_EQ(plan.request.max_tokens, 0);
    EXPECT_EQ(plan.cancel, Moment::kNever);
  }
}

TEST(Shrink, KeepsWhatTheFailureNeeds) {
  std::vector<RequestPlan> plans = draw_plans(50);
  plans[20].request.priority = 7;
  plans[20].cancel = Moment::kUnderWay;
  plans[20].cancel_count = 3;
  const auto fails = [](const std::vector<RequestPlan>& list) {
    return std::ranges::any_of(list, [](const RequestPlan& plan) {
      return plan.request.priority == 7 && plan.cancel == Moment::kUnderWay;
    });
  };
  const std::vector<RequestPlan> left = shrink(plans, fails, 1000);
  ASSERT_EQ(left.size(), 1u);
  EXPECT_EQ(left[0].cancel_count, 3);
}

TEST(Shrink, StopsAfterSoManyTries) {
  int num_tries = 0;
  const auto fails = [&](const std::vector<RequestPlan>&) { return ++num_tries > 0; };
  EXPECT_FALSE(shrink(draw_plans(100), fails, 5).empty());
  EXPECT_EQ(num_tries, 5);
}

}  // namespace
}  // namespace ingot::simulation
