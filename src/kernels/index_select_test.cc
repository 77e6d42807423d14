#include "kernels/index_select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

std::vector<int32_t> topk(const std::vector<float>& scores, int64_t k) {
  std::vector<uint64_t> order(scores.size());
  std::vector<int32_t> positions(static_cast<size_t>(k));
  select_topk(scores.data(), static_cast<int64_t>(scores.size()), k, order.data(),
              positions.data());
  return positions;
}

TEST(SelectTopk, EqualsAStableSort) {
  for (const int64_t count : {1, 2, 17, 300}) {
    auto scores = random_values("scores", count);
    for (float& score : scores) score = std::round(score * 4) / 4;  // many ties
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](int32_t t) { return scores[static_cast<size_t>(t)]; });
    for (int64_t k = 1; k <= count; k += 1 + count / 7) {
      std::vector<int32_t> want(order.begin(), order.begin() + k);
      std::ranges::sort(want);
      EXPECT_EQ(topk(scores, k), want) << count << " " << k;
    }
  }
}

TEST(SelectTopk, TiesGoToTheEarliestAndZerosAreEqual) {
  EXPECT_EQ(topk({0.0f, -0.0f, 0.0f, -0.0f}, 2), (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(topk({-1, 3, 3, 3, 5}, 2), (std::vector<int32_t>{1, 4}));
}

TEST(SelectTopk, SurvivesNaNAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const auto positions = topk({nan, 1, -inf, nan, inf, -nan, 0}, 3);
  EXPECT_TRUE(std::ranges::is_sorted(positions));
  EXPECT_EQ(std::ranges::adjacent_find(positions), positions.end());
}

// Index keys of one long sequence on scattered pages, and rows of queries into it.
class IndexProblem {
 public:
  static constexpr int64_t kHeads = 16;
  static constexpr int64_t kDim = 12;
  static constexpr int64_t kTopk = 9;
  static constexpr int64_t kContext = 1300;  // several spans of keys
  static constexpr int64_t kPages = (kContext + kPageTokens - 1) / kPageTokens;

  explicit IndexProblem(std::vector<int32_t> positions) : positions_(std::move(positions)) {
    for (int32_t page = 0; page < kPages; ++page) pages_.push_back((page * 37 + 5) % kPages);
    const auto values = random_values("keys", kContext * kDim);
    keys_.resize(static_cast<size_t>(kPages * kPageTokens * kDim));
    for (int64_t t = 0; t < kContext; ++t) {
      const int64_t row =
          pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
      std::copy_n(values.begin() + t * kDim, kDim, keys_.begin() + row * kDim);
    }
    narrow_keys_ = rounded_to_bf16(keys_);
    q_ = random_values("q", rows() * kHeads * kDim);
    gates_ = random_values("gates", rows() * kHeads);
  }

  int64_t rows() const { return static_cast<int64_t>(positions_.size()); }

  // Selected positions of rows [first, first + count); empty for rows that take all.
  std::vector<std::vector<int32_t>> run(const IndexSelectVariant& variant, int64_t first,
                                        int64_t count, int threads) {
    const CacheType type = variant.kind.keys;
    std::vector<const int32_t*> tables(positions_.size(), pages_.data());
    std::vector<float> scores(static_cast<size_t>(kIndexRowsPerPass * kContext));
    std::vector<uint64_t> order(static_cast<size_t>(threads * kContext));
    std::vector<int32_t> selected(static_cast<size_t>(count * kTopk), -1);
    const Selection selection{.topk = kTopk, .positions = selected.data()};
    void* keys = type == CacheType::kF32 ? static_cast<void*>(keys_.data()) : narrow_keys_.data();
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(context, {.rows = {.count = count,
                                     .positions = positions_.data() + first,
                                     .page_tables = tables.data()},
                            .q = q_.data() + first * kHeads * kDim,
                            .gates = gates_.data() + first * kHeads,
                            .heads = kHeads,
                            .dim = kDim,
                            .keys = {.type = type, .data = keys, .width = kDim},
                            .scores = scores.data(),
                            .order = order.data(),
                            .context_max = kContext,
                            .selection = selection});
    });
    std::vector<std::vector<int32_t>> result;
    for (int64_t row = 0; row < count; ++row) {
      const bool all = selection.takes_all(positions_[static_cast<size_t>(first + row)] + 1);
      result.emplace_back(selection.row(row), selection.row(row) + (all ? 0 : kTopk));
    }
    return result;
  }

  // By the formula in double and a stable sort.
  std::vector<int32_t> expected(int64_t row, CacheType type) const {
    const auto keys = type == CacheType::kF32 ? keys_ : widened(narrow_keys_);
    const int64_t count = positions_[static_cast<size_t>(row)] + 1;
    std::vector<double> scores;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at =
          pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
      double score = 0;
      for (int64_t head = 0; head < kHeads; ++head) {
        double product = 0;
        for (int64_t i = 0; i < kDim; ++i) {
          product +=
              static_cast<double>(q_[static_cast<size_t>((row * kHeads + head) * kDim + i)]) *
              keys[static_cast<size_t>(at * kDim + i)];
        }
        score += gates_[static_cast<size_t>(row * kHeads + head)] * std::max(0.0, product);
      }
      scores.push_back(score);
    }
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](int32_t t) { return scores[static_cast<size_t>(t)]; });
    order.resize(static_cast<size_t>(kTopk));
    std::ranges::sort(order);
    return order;
  }

 private:
  std::vector<int32_t> positions_;
  std::vector<int32_t> pages_;
  std::vector<float> keys_;
  std::vector<tensor::BFloat16> narrow_keys_;
  std::vector<float> q_;
  std::vector<float> gates_;
};

std::vector<int32_t> mixed_positions() {
  std::vector<int32_t> positions = {0, 8, 9, 511, 512, 1299, 600};
  for (int32_t p = 20; p < 60; ++p) positions.push_back(p * 7);  // several passes of rows
  return positions;
}

TEST(IndexSelect, EveryVariantFindsTheHighestScores) {
  IndexProblem problem(mixed_positions());
  for (const IndexSelectVariant& variant : index_select_variants()) {
    if (variant.target > detect_target()) continue;
    const auto selected = problem.run(variant, 0, problem.rows(), 1);
    for (int64_t row = 0; row < problem.rows(); ++row) {
      const auto& got = selected[static_cast<size_t>(row)];
      if (got.empty()) continue;
      EXPECT_EQ(got, problem.expected(row, variant.kind.keys)) << variant.name << " row " << row;
    }
    EXPECT_TRUE(selected[0].empty() && selected[1].empty());
    EXPECT_FALSE(selected[2].empty());
  }
}

TEST(IndexSelect, NeitherBatchNorThreadsMatter) {
  IndexProblem problem(mixed_positions());
  for (const IndexSelectVariant& variant : index_select_variants()) {
    if (variant.target > detect_target()) continue;
    const auto together = problem.run(variant, 0, problem.rows(), 1);
    EXPECT_EQ(problem.run(variant, 0, problem.rows(), 2), together);
    EXPECT_EQ(problem.run(variant, 0, problem.rows(), 3), together);
    for (int64_t row = 0; row < problem.rows(); ++row) {
      EXPECT_EQ(problem.run(variant, row, 1, 1)[0], together[static_cast<size_t>(row)]);
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
