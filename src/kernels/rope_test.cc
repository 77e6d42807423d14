#include "kernels/rope.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kDim = 8;
constexpr double kTheta = 1e6;

std::vector<double> frequencies() {
  std::vector<double> result;
  for (int64_t j = 0; j < kDim / 2; ++j) {
    result.push_back(std::pow(kTheta, -2.0 * static_cast<double>(j) / kDim));
  }
  return result;
}

std::vector<float> table_of(const std::vector<int32_t>& positions, int threads) {
  std::vector<float> table(positions.size() * kDim);
  const auto inverse = frequencies();
  run_on_team(threads, [&](const ExecutionContext& context) {
    rope_table(context,
               {.count = static_cast<int64_t>(positions.size()), .positions = positions.data()},
               inverse.data(), /*amplitude=*/1, kDim, table.data());
  });
  return table;
}

TEST(Rope, TableIsExactToTheLastPositions) {
  const std::vector<int32_t> positions = {0, 1, 77, 1048575};
  const auto table = table_of(positions, 2);
  EXPECT_EQ(table, table_of(positions, 1));
  for (size_t row = 0; row < positions.size(); ++row) {
    for (size_t j = 0; j < kDim / 2; ++j) {
      const long double angle = static_cast<long double>(positions[row]) *
                                std::pow(1e6L, -2.0L * static_cast<long double>(j) / kDim);
      EXPECT_NEAR(table[row * kDim + j], static_cast<double>(std::cos(angle)), 1e-7);
      EXPECT_NEAR(table[row * kDim + kDim / 2 + j], static_cast<double>(std::sin(angle)), 1e-7);
    }
  }
}

void expect_styles_permute(RotateRow rotate) {
  const auto table = table_of({123}, 1);
  const auto values = random_values("values", kDim);
  std::vector<float> interleaved = values;
  rotate(interleaved.data(), table.data(), kDim, RopeStyle::kInterleaved);
  std::vector<float> halves(kDim);
  for (size_t j = 0; j < kDim / 2; ++j) {
    halves[j] = values[2 * j];
    halves[kDim / 2 + j] = values[2 * j + 1];
  }
  rotate(halves.data(), table.data(), kDim, RopeStyle::kHalfSplit);
  for (size_t j = 0; j < kDim / 2; ++j) {
    EXPECT_EQ(interleaved[2 * j], halves[j]);
    EXPECT_EQ(interleaved[2 * j + 1], halves[kDim / 2 + j]);
  }
}

TEST(Rope, StylesDifferByAPermutationOnly) {
  for (const Target target : usable_targets()) {
    expect_styles_permute(row_operations(target).rotate);
  }
}

// Whole vectors, parts of one, and nothing; values behind the last stay as they are.
TEST(Rope, EveryTargetRotates) {
  for (const Target target : usable_targets()) {
    for (const RopeStyle style : {RopeStyle::kInterleaved, RopeStyle::kHalfSplit}) {
      for (const int64_t dim : {0, 2, 6, 8, 10, 16, 22, 64}) {
        const int64_t half = dim / 2;
        const auto before = random_values("values", dim + 8);
        std::vector<float> table;
        for (int64_t j = 0; j < dim; ++j) {
          const double angle = 0.37 * static_cast<double>(j % std::max<int64_t>(half, 1) + 1);
          table.push_back(static_cast<float>(j < half ? std::cos(angle) : std::sin(angle)));
        }
        auto values = before;
        row_operations(target).rotate(values.data(), table.data(), dim, style);
        for (int64_t j = 0; j < half; ++j) {
          const bool pairs = style == RopeStyle::kInterleaved;
          const auto first = static_cast<size_t>(pairs ? 2 * j : j);
          const auto second = static_cast<size_t>(pairs ? 2 * j + 1 : half + j);
          const double cosine = table[static_cast<size_t>(j)];
          const double sine = table[static_cast<size_t>(half + j)];
          EXPECT_NEAR(values[first], before[first] * cosine - before[second] * sine, 5e-7);
          EXPECT_NEAR(values[second], before[first] * sine + before[second] * cosine, 5e-7);
        }
        EXPECT_TRUE(std::equal(values.begin() + dim, values.end(), before.begin() + dim));
      }
    }
  }
}

TEST(Rope, ProductsDependOnTheDistanceOnly) {
  const auto q = random_values("q", kDim);
  const auto k = random_values("k", kDim);
  const auto product = [&](int32_t q_position, int32_t k_position) {
    auto rotated_q = q;
    auto rotated_k = k;
    const auto table = table_of({q_position, k_position}, 1);
    rotate_row_reference(rotated_q.data(), table.data(), kDim, RopeStyle::kInterleaved);
    rotate_row_reference(rotated_k.data(), table.data() + kDim, kDim, RopeStyle::kInterleaved);
    double sum = 0;
    for (size_t i = 0; i < kDim; ++i) sum += static_cast<double>(rotated_q[i]) * rotated_k[i];
    return sum;
  };
  EXPECT_NEAR(product(10, 3), product(1010, 1003), 1e-5);
  EXPECT_GT(std::abs(product(10, 3) - product(10, 4)), 1e-3);
}

}  // namespace
}  // namespace ingot::kernels
