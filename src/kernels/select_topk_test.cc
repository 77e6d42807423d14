#include "kernels/select_topk.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

// Neighbours of the answer, and words behind the workspace, must stay as they are.
std::vector<int32_t> topk(SelectTopk select, const std::vector<float>& scores, int64_t k) {
  constexpr uint64_t kGuard = 0xABABABABABABABAB;
  std::vector<uint64_t> order(scores.size() + 1, kGuard);
  std::vector<int32_t> positions(static_cast<size_t>(k) + 8, -7);
  select(scores.data(), static_cast<int64_t>(scores.size()), k, order.data(), positions.data());
  EXPECT_EQ(order.back(), kGuard);
  EXPECT_EQ(std::ranges::count(positions.begin() + k, positions.end(), -7), 8);
  positions.resize(static_cast<size_t>(k));
  return positions;
}

std::vector<int32_t> by_sorting(const std::vector<float>& scores, int64_t k) {
  std::vector<int32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](int32_t t) { return scores[static_cast<size_t>(t)]; });
  order.resize(static_cast<size_t>(k));
  std::ranges::sort(order);
  return order;
}

TEST(SelectTopk, EqualsAStableSort) {
  for (const Target target : usable_targets()) {
    const SelectTopk select = row_operations(target).select_topk;
    for (const int64_t count : {1, 2, 17, 63, 64, 65, 71, 72, 300, 1027}) {
      const auto distinct = random_values("scores", count);
      auto ties = distinct;
      for (float& score : ties) score = std::round(score * 4) / 4;
      for (const auto& scores : {distinct, ties}) {
        for (int64_t k = 1; k <= count; k += 1 + count / 7) {
          EXPECT_EQ(topk(select, scores, k), by_sorting(scores, k))
              << name(target) << " " << count << " " << k;
        }
        EXPECT_EQ(topk(select, scores, count), by_sorting(scores, count));
      }
    }
  }
}

TEST(SelectTopk, TiesGoToTheEarliestAndZerosAreEqual) {
  for (const Target target : usable_targets()) {
    const SelectTopk select = row_operations(target).select_topk;
    EXPECT_EQ(topk(select, {0.0f, -0.0f, 0.0f, -0.0f}, 2), (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(topk(select, {-1, 3, 3, 3, 5}, 2), (std::vector<int32_t>{1, 4}));
    std::vector<float> zeros(100, -0.0f);
    for (size_t i = 1; i < zeros.size(); i += 2) zeros[i] = 0;
    std::vector<int32_t> first(37);
    std::iota(first.begin(), first.end(), 0);
    EXPECT_EQ(topk(select, zeros, 37), first) << name(target);
  }
}

// Scores whose values or ranks lie so that halving makes the least headway, and those that no sum
// should give.
std::vector<std::vector<float>> awkward(int64_t count) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<std::vector<float>> all;
  auto normal = random_values("normal", count);
  all.push_back(normal);
  all.back()[0] = 3e38f;  // one far above
  all.push_back(normal);
  for (float& v : all.back()) v = std::abs(v) * 1e-30f;
  all.back()[static_cast<size_t>(count) / 2] = -1;  // one far below
  all.push_back(normal);
  for (float& v : all.back()) v = std::exp(40 * v);  // over many binades, and to infinity
  all.push_back(normal);
  for (size_t i = 0; i < all.back().size(); ++i) {
    all.back()[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(1.0f) +
                                         static_cast<uint32_t>(i * 7919 % 4096));
  }
  all.push_back(std::vector<float>(static_cast<size_t>(count), -2.5f));
  all.push_back(normal);
  const float odd[] = {kInfinity,
                       -kInfinity,
                       std::nanf(""),
                       -std::nanf(""),
                       0.0f,
                       -0.0f,
                       0x1p-149f,
                       -0x1p-149f,
                       std::numeric_limits<float>::max(),
                       std::numeric_limits<float>::lowest(),
                       std::bit_cast<float>(0x7FFFFFFFu),
                       std::bit_cast<float>(0xFFFFFFFFu)};
  for (size_t i = 0; i < all.back().size(); ++i) {
    if (i % 3 != 0) all.back()[i] = odd[i * 31 % std::size(odd)];
  }
  all.push_back(std::vector<float>(static_cast<size_t>(count), std::bit_cast<float>(0xFFFFFFFFu)));
  return all;
}

TEST(SelectTopk, EveryTargetGivesTheSamePositions) {
  for (const Target target : usable_targets()) {
    const SelectTopk select = row_operations(target).select_topk;
    for (const int64_t count : {64, 67, 255, 2049}) {
      const auto sets = awkward(count);
      for (size_t set = 0; set < sets.size(); ++set) {
        for (const int64_t k :
             {int64_t{1}, int64_t{2}, count / 8 + 1, count / 2, count - 1, count}) {
          const auto got = topk(select, sets[set], k);
          EXPECT_EQ(got, topk(select_topk_reference, sets[set], k))
              << name(target) << " " << count << " " << k << " of set " << set;
          EXPECT_EQ(std::ranges::adjacent_find(got, std::greater_equal<>()), got.end());
        }
      }
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
