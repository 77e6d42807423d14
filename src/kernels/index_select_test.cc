#include "kernels/index_select.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

// Index keys of one long sequence on scattered pages, and rows of queries into it.
class IndexProblem {
 public:
  static constexpr int64_t kTopk = 9;
  static constexpr int64_t kContext = 1300;  // several spans of keys
  static constexpr int64_t kPages = (kContext + kPageTokens - 1) / kPageTokens;

  IndexProblem(std::vector<int32_t> positions, int64_t heads, int64_t dim)
      : heads_(heads), dim_(dim), positions_(std::move(positions)) {
    for (int32_t page = 0; page < kPages; ++page) pages_.push_back((page * 37 + 5) % kPages);
    const auto values = random_values("keys", kContext * dim_);
    keys_.resize(static_cast<size_t>(kPages * kPageTokens * dim_));
    for (int64_t t = 0; t < kContext; ++t) {
      const int64_t row =
          pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
      std::copy_n(values.begin() + t * dim_, dim_, keys_.begin() + row * dim_);
    }
    narrow_keys_ = rounded_to_bf16(keys_);
    q_ = random_values("q", rows() * heads_ * dim_);
    gates_ = random_values("gates", rows() * heads_);
  }

  void fill_key(int64_t t, float value) {
    const int64_t row =
        pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
    std::fill_n(keys_.begin() + row * dim_, dim_, value);
    narrow_keys_ = rounded_to_bf16(keys_);
  }

  int64_t rows() const { return static_cast<int64_t>(positions_.size()); }

  // Selected positions of rows [first, first + count); empty for rows that take all.
  std::vector<std::vector<int32_t>> run(const IndexSelectVariant& variant, int64_t first,
                                        int64_t count, int threads) {
    const CacheType type = variant.kind.keys;
    std::vector<const int32_t*> tables(positions_.size(), pages_.data());
    scores_.assign(static_cast<size_t>(kIndexRowsPerPass * kContext), -1);
    std::vector<uint64_t> order(static_cast<size_t>(threads * kContext));
    std::vector<int32_t> selected(static_cast<size_t>(count * kTopk), -1);
    const Selection selection{.topk = kTopk, .positions = selected.data()};
    void* keys = type == CacheType::kF32 ? static_cast<void*>(keys_.data()) : narrow_keys_.data();
    run_on_team(
        threads,
        [&](const ExecutionContext& context) {
          variant.run(context, {.rows = {.count = count,
                                         .positions = positions_.data() + first,
                                         .page_tables = tables.data()},
                                .q = q_.data() + first * heads_ * dim_,
                                .gates = gates_.data() + first * heads_,
                                .heads = heads_,
                                .dim = dim_,
                                .keys = {.type = type, .data = keys, .width = dim_},
                                .scores = scores_.data(),
                                .order = order.data(),
                                .context_max = kContext,
                                .selection = selection});
        },
        variant.target);
    std::vector<std::vector<int32_t>> result;
    for (int64_t row = 0; row < count; ++row) {
      const bool all = selection.takes_all(positions_[static_cast<size_t>(first + row)] + 1);
      result.emplace_back(selection.row(row), selection.row(row) + (all ? 0 : kTopk));
    }
    return result;
  }

  // Of the first row of the last run that did not take all.
  const std::vector<float>& scores() const { return scores_; }

  // By the formula in double.
  std::vector<double> expected_scores(int64_t row, CacheType type) const {
    const auto keys = type == CacheType::kF32 ? keys_ : widened(narrow_keys_);
    const int64_t count = positions_[static_cast<size_t>(row)] + 1;
    std::vector<double> scores;
    for (int64_t t = 0; t < count; ++t) {
      const int64_t at =
          pages_[static_cast<size_t>(t / kPageTokens)] * kPageTokens + t % kPageTokens;
      double score = 0;
      for (int64_t head = 0; head < heads_; ++head) {
        double product = 0;
        for (int64_t i = 0; i < dim_; ++i) {
          product +=
              static_cast<double>(q_[static_cast<size_t>((row * heads_ + head) * dim_ + i)]) *
              keys[static_cast<size_t>(at * dim_ + i)];
        }
        score += gates_[static_cast<size_t>(row * heads_ + head)] * std::max(0.0, product);
      }
      scores.push_back(score);
    }
    return scores;
  }

  // The highest of those, by a stable sort.
  std::vector<int32_t> expected(int64_t row, CacheType type) const {
    const auto scores = expected_scores(row, type);
    std::vector<int32_t> order(scores.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater<>(),
                             [&](int32_t t) { return scores[static_cast<size_t>(t)]; });
    order.resize(static_cast<size_t>(kTopk));
    std::ranges::sort(order);
    return order;
  }

 private:
  int64_t heads_;
  int64_t dim_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> pages_;
  std::vector<float> keys_;
  std::vector<tensor::BFloat16> narrow_keys_;
  std::vector<float> q_;
  std::vector<float> gates_;
  std::vector<float> scores_;
};

std::vector<int32_t> mixed_positions() {
  std::vector<int32_t> positions = {0, 8, 9, 511, 512, 1299, 600};
  for (int32_t p = 20; p < 60; ++p) positions.push_back(p * 7);  // several passes of rows
  return positions;
}

struct Shape {
  int64_t heads;
  int64_t dim;
};
// Heads that fill groups of sixteen, one more, and few; dimensions that fill vectors, and not.
constexpr Shape kShapes[] = {{16, 12}, {32, 128}, {17, 8}, {3, 5}, {1, 1}};

std::vector<const IndexSelectVariant*> variants_for(const Shape& shape) {
  std::vector<const IndexSelectVariant*> usable;
  for (const IndexSelectVariant& variant : index_select_variants()) {
    const IndexSelectUse use{.kind = variant.kind, .heads = shape.heads, .dim = shape.dim};
    if (variant.target <= detect_target() && variant.refuses(use).empty()) {
      usable.push_back(&variant);
    }
  }
  return usable;
}

TEST(IndexSelect, EveryVariantFindsTheHighestScores) {
  for (const Shape& shape : kShapes) {
    IndexProblem problem(mixed_positions(), shape.heads, shape.dim);
    for (const IndexSelectVariant* variant : variants_for(shape)) {
      const auto selected = problem.run(*variant, 0, problem.rows(), 1);
      for (int64_t row = 0; row < problem.rows(); ++row) {
        const auto& got = selected[static_cast<size_t>(row)];
        if (got.empty()) continue;
        EXPECT_EQ(got, problem.expected(row, variant->kind.keys))
            << variant->name << " " << shape.heads << " x " << shape.dim << " row " << row;
      }
      EXPECT_TRUE(selected[0].empty() && selected[1].empty());
      EXPECT_FALSE(selected[2].empty());
    }
  }
}

TEST(IndexSelect, ScoresAreCloseToDouble) {
  for (const Shape& shape : kShapes) {
    IndexProblem problem({1299}, shape.heads, shape.dim);
    for (const IndexSelectVariant* variant : variants_for(shape)) {
      problem.run(*variant, 0, 1, 2);
      const auto want = problem.expected_scores(0, variant->kind.keys);
      const double size = std::sqrt(static_cast<double>(shape.heads * shape.dim));
      for (size_t t = 0; t < want.size(); ++t) {
        ASSERT_NEAR(problem.scores()[t], want[t], size * 2e-6) << variant->name << " key " << t;
      }
    }
  }
}

// A NaN among a head's products counts as nothing, and does not reach other keys.
TEST(IndexSelect, KeysThatAreNotFiniteStayAlone) {
  const Shape shape{17, 8};
  IndexProblem problem({1299}, shape.heads, shape.dim);
  for (const IndexSelectVariant* variant : variants_for(shape)) {
    problem.run(*variant, 0, 1, 1);
    const auto before = problem.scores();
    IndexProblem spoiled({1299}, shape.heads, shape.dim);
    spoiled.fill_key(700, std::numeric_limits<float>::quiet_NaN());
    EXPECT_EQ(spoiled.run(*variant, 0, 1, 1)[0].size(), static_cast<size_t>(IndexProblem::kTopk));
    EXPECT_EQ(spoiled.scores()[700], 0.0f) << variant->name;
    for (size_t t = 0; t < 1300; ++t) {
      if (t != 700) {
        ASSERT_EQ(spoiled.scores()[t], before[t]) << variant->name;
      }
    }
  }
}

TEST(IndexSelect, NeitherBatchNorThreadsMatter) {
  for (const Shape& shape : {Shape{16, 12}, Shape{17, 5}}) {
    IndexProblem problem(mixed_positions(), shape.heads, shape.dim);
    for (const IndexSelectVariant* variant : variants_for(shape)) {
      const auto together = problem.run(*variant, 0, problem.rows(), 1);
      EXPECT_EQ(problem.run(*variant, 0, problem.rows(), 2), together);
      EXPECT_EQ(problem.run(*variant, 0, problem.rows(), 3), together);
      for (int64_t row = 0; row < problem.rows(); ++row) {
        EXPECT_EQ(problem.run(*variant, row, 1, 1)[0], together[static_cast<size_t>(row)]);
      }
    }
  }
}

TEST(IndexSelect, AVariantSaysWhatIsTooLargeForIt) {
  for (const IndexSelectVariant& variant : index_select_variants()) {
    const auto refusal = [&](int64_t heads, int64_t dim) {
      return variant.refuses({.kind = variant.kind, .heads = heads, .dim = dim});
    };
    EXPECT_EQ(refusal(64, 128), "") << variant.name;
    if (variant.target == Target::kAvx2) {
      EXPECT_EQ(refusal(1, 257), "257 values a head, over 256");
      EXPECT_EQ(refusal(129, 128), "129 heads of 128, over 16384 values together");
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
