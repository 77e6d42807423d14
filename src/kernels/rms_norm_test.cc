#include "kernels/rms_norm.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kWidths[] = {1, 3, 4, 8, 15, 16, 17, 37, 128, 2048, 6144};

TEST(RmsNorm, FollowsItsFormulaForPickedRows) {
  for (const int64_t cols : kWidths) {
    const auto x = random_values("x", 4 * cols);
    const auto weight = random_values("weight", cols);
    const std::vector<int32_t> source = {3, 0, 3};
    for (const Target target : usable_targets()) {
      for (const int threads : {1, 2, 3}) {
        std::vector<float> out(static_cast<size_t>(3 * cols));
        run_on_team(
            threads,
            [&](const ExecutionContext& context) {
              rms_norm(context, {.x = x.data(),
                                 .weight = weight.data(),
                                 .out = out.data(),
                                 .source = source.data(),
                                 .rows = 3,
                                 .cols = cols,
                                 .eps = 1e-5f});
            },
            target);
        for (int64_t row = 0; row < 3; ++row) {
          const float* in = x.data() + source[static_cast<size_t>(row)] * cols;
          double squares = 0;
          for (int64_t i = 0; i < cols; ++i) squares += static_cast<double>(in[i]) * in[i];
          const double scale =
              1 / std::sqrt(squares / static_cast<double>(cols) + static_cast<double>(1e-5f));
          for (int64_t i = 0; i < cols; ++i) {
            const double want = weight[static_cast<size_t>(i)] * in[i] * scale;
            ASSERT_NEAR(out[static_cast<size_t>(row * cols + i)], want, 2e-7 * std::abs(want))
                << name(target) << " " << cols;
          }
        }
      }
    }
  }
}

TEST(RmsNorm, ZeroRowStaysFinite) {
  const std::vector<float> zero(8, 0.0f);
  const std::vector<float> weight(8, 1.0f);
  for (const Target target : usable_targets()) {
    std::vector<float> out(8, 9.0f);
    row_operations(target).rms_norm(zero.data(), weight.data(), 8, 1e-5f, out.data());
    EXPECT_EQ(out, zero);
  }
}

// Squares that f32 could not hold, and rows that are normed in place.
TEST(RmsNorm, ExtremeRows) {
  for (const Target target : usable_targets()) {
    const RmsNormRow norm = row_operations(target).rms_norm;
    for (const float size : {1e-30f, 1e30f}) {
      std::vector<float> row(21, size);
      const std::vector<float> weight(21, 2.0f);
      norm(row.data(), weight.data(), 21, 0, row.data());
      for (const float value : row) EXPECT_NEAR(value, 2, 1e-6) << name(target);
    }
    std::vector<float> row(21, 1.0f);
    row[20] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> weight(21, 1.0f);
    norm(row.data(), weight.data(), 21, 0, row.data());
    for (const float value : row) EXPECT_TRUE(std::isnan(value)) << name(target);
    norm(row.data(), weight.data(), 0, 1e-5f, row.data());  // nothing to do
  }
}

TEST(LayerNorm, FollowsItsFormula) {
  for (const int64_t cols : kWidths) {
    auto x = random_values("x", cols);
    for (float& value : x) value += 5;
    const auto weight = random_values("weight", cols);
    const auto bias = random_values("bias", cols);
    double mean = 0;
    for (const float value : x) mean += static_cast<double>(value) / static_cast<double>(cols);
    double variance = 0;
    for (const float value : x) {
      variance += (value - mean) * (value - mean) / static_cast<double>(cols);
    }
    for (const Target target : usable_targets()) {
      auto out = x;
      row_operations(target).layer_norm(out.data(), weight.data(), bias.data(), cols, 1e-6f,
                                        out.data());
      for (size_t i = 0; i < out.size(); ++i) {
        const double normed = (x[i] - mean) / std::sqrt(variance + static_cast<double>(1e-6f));
        EXPECT_NEAR(out[i], weight[i] * normed + bias[i], 1e-6) << name(target) << " " << cols;
      }
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
