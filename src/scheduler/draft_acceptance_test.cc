#include "scheduler/draft_acceptance.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::scheduler {
namespace {

constexpr std::array<double, 3> kAll = {1, 1, 1};

TEST(DraftAcceptance, BeginsHopeful) {
  const DraftAcceptance acceptance(3);
  EXPECT_DOUBLE_EQ(acceptance.expected_tokens(0, kAll), 1);
  EXPECT_NEAR(acceptance.expected_tokens(3, kAll), 1 + 0.8 + 0.64 + 0.512, 1e-12);
}

TEST(DraftAcceptance, ComesToWhatIsObserved) {
  DraftAcceptance acceptance(3);
  const std::array<int32_t, 3> drafted = {100, 100, 100};
  const std::array<int32_t, 3> accepted = {90, 45, 9};  // 0.9, 0.5, 0.2 of those before
  for (int32_t i = 0; i < 200; ++i) acceptance.observe(100, drafted, accepted);
  EXPECT_NEAR(acceptance.expected_tokens(1, kAll), 1.9, 0.01);
  EXPECT_NEAR(acceptance.expected_tokens(2, kAll), 2.35, 0.02);
  EXPECT_NEAR(acceptance.expected_tokens(3, kAll), 2.44, 0.03);
}

TEST(DraftAcceptance, PositionsNotReachedAreLikeTheOneBefore) {
  DraftAcceptance acceptance(3);
  for (int32_t i = 0; i < 5000; ++i) {
    acceptance.observe(4, std::array<int32_t, 1>{4}, std::array<int32_t, 1>{2});
  }
  EXPECT_NEAR(acceptance.expected_tokens(3, kAll), 1 + 0.5 + 0.25 + 0.125, 0.02);
}

// Sequences without a draft say nothing about its acceptance, but they draw fewer tokens.
TEST(DraftAcceptance, SequencesWithFewerDrafts) {
  DraftAcceptance acceptance(2);
  const std::array<int32_t, 2> drafted = {100, 50};
  const std::array<int32_t, 2> accepted = {80, 32};  // 40 of the 80 had a second one
  for (int32_t i = 0; i < 200; ++i) acceptance.observe(100, drafted, accepted);
  EXPECT_NEAR(acceptance.expected_tokens(2, kAll), 1 + 0.8 + 0.64, 0.01);
  const std::array<double, 2> half = {1, 0.5};
  EXPECT_NEAR(acceptance.expected_tokens(2, half), 1 + 0.8 + 0.32, 0.01);
}

TEST(DraftAcceptance, ForgetsWhatIsNotTried) {
  DraftAcceptance acceptance(1);
  for (int32_t i = 0; i < 100; ++i) {
    acceptance.observe(100, std::array<int32_t, 1>{100}, std::array<int32_t, 1>{0});
  }
  EXPECT_LT(acceptance.expected_tokens(1, kAll), 1.02);
  for (int32_t i = 0; i < 20'000; ++i) acceptance.observe(100, {}, {});
  EXPECT_NEAR(acceptance.expected_tokens(1, kAll), 1.8, 0.01);
}

// More in one step than it remembers.
TEST(DraftAcceptance, LargeSteps) {
  DraftAcceptance acceptance(1);
  acceptance.observe(5000, std::array<int32_t, 1>{5000}, std::array<int32_t, 1>{4000});
  acceptance.observe(5000, std::array<int32_t, 1>{5000}, std::array<int32_t, 1>{1000});
  EXPECT_NEAR(acceptance.expected_tokens(1, kAll), 1.2, 0.01);
}

}  // namespace
}  // namespace ingot::scheduler
