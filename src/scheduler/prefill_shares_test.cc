#include "scheduler/prefill_shares.h"

#include <vector>

#include <gtest/gtest.h>

namespace ingot::scheduler {
namespace {

std::vector<int32_t> shared(std::vector<PrefillShare> shares, int32_t budget) {
  share_prefill(shares, budget);
  std::vector<int32_t> rows;
  for (const PrefillShare& share : shares) rows.push_back(share.rows);
  return rows;
}

PrefillShare wants(int32_t rows) { return {.rows_left = rows, .max_rows = rows}; }

TEST(PrefillShares, HalfGoesToTheFirstAndTheRestToTheShortest) {
  EXPECT_EQ(shared({wants(1000), wants(30), wants(20)}, 100), (std::vector<int32_t>{50, 30, 20}));
  EXPECT_EQ(shared({wants(1000), wants(30), wants(40)}, 100), (std::vector<int32_t>{50, 30, 20}));
  EXPECT_EQ(shared({wants(1000), wants(10)}, 100), (std::vector<int32_t>{90, 10}));
}

TEST(PrefillShares, EqualOnesGoOneAfterAnother) {
  EXPECT_EQ(shared({wants(500), wants(500)}, 100), (std::vector<int32_t>{100, 0}));
}

TEST(PrefillShares, WhatIsOfNoUseIsNotGiven) {
  EXPECT_EQ(shared({wants(5), {.rows_left = 9, .min_rows = 2, .max_rows = 9}}, 6),
            (std::vector<int32_t>{5, 0}))
      << "one row would only repeat what is there";
  EXPECT_EQ(shared({{.rows_left = 1, .min_rows = 2, .max_rows = 9}}, 1), (std::vector<int32_t>{1}));
  EXPECT_EQ(shared({}, 10), (std::vector<int32_t>{}));
}

TEST(PrefillShares, TheLimitOfOneHolds) {
  EXPECT_EQ(shared({{.rows_left = 50, .max_rows = 3}, wants(200)}, 100),
            (std::vector<int32_t>{3, 97}));
}

}  // namespace
}  // namespace ingot::scheduler
