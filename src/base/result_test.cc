#include "base/result.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/check.h"

namespace ingot::base {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return error("{} is odd; pass an even number", number);
  return number / 2;
}

Result<int> quarter(int number) { return half(TRY(half(number))); }

Status check_even(int number) {
  if (number % 2 != 0) return error("{} is odd; pass an even number", number);
  return {};
}

Status check_eighth(int number) {
  TRY(check_even(TRY(quarter(number))));
  return {};
}

TEST(Result, TryGivesTheValue) {
  EXPECT_EQ(quarter(12), 3);
  EXPECT_TRUE(check_eighth(16).has_value());
}

TEST(Result, TryReturnsTheFirstError) {
  const Result<int> result = quarter(6);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "3 is odd; pass an even number");
  const Status status = check_eighth(4);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message, "1 is odd; pass an even number");
}

Result<std::unique_ptr<std::string>> make_text() { return std::make_unique<std::string>("text"); }

Result<std::string> take_text() {
  const std::unique_ptr<std::string> text = TRY(make_text());
  return *text;
}

TEST(Result, TryMovesWhatCannotBeCopied) { EXPECT_EQ(take_text(), "text"); }

Status count_evaluations(int& evaluations) {
  TRY([&]() -> Status {
    ++evaluations;
    return {};
  }());
  return {};
}

TEST(Result, TryEvaluatesOnce) {
  int evaluations = 0;
  EXPECT_TRUE(count_evaluations(evaluations).has_value());
  EXPECT_EQ(evaluations, 1);
}

TEST(CheckDeathTest, NamesPlaceConditionAndDetail) {
  const int rows = 3;
  CHECK(rows == 3);
  EXPECT_DEATH(CHECK(rows == 4), "result_test.cc:[0-9]+: CHECK failed: rows == 4\n");
  EXPECT_DEATH(CHECK(rows == 4, "rows"), "CHECK failed: rows == 4: rows\n");
  const std::string detail = "of a string";
  EXPECT_DEATH(CHECK(rows == 4, detail), "CHECK failed: rows == 4: of a string\n");
}

}  // namespace
}  // namespace ingot::base
