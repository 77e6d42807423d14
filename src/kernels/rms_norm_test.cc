#include "kernels/rms_norm.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/embed.h"
#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

TEST(RmsNorm, FollowsItsFormulaForPickedRows) {
  constexpr int64_t kCols = 37;
  const auto x = random_values("x", 4 * kCols);
  const auto weight = random_values("weight", kCols);
  const std::vector<int32_t> source = {3, 0, 3};
  for (const int threads : {1, 2, 3}) {
    std::vector<float> out(3 * kCols);
    run_on_team(threads, [&](const ExecutionContext& context) {
      rms_norm(context, {.x = x.data(),
                         .weight = weight.data(),
                         .out = out.data(),
                         .source = source.data(),
                         .rows = 3,
                         .cols = kCols,
                         .eps = 1e-5f});
    });
    for (size_t row = 0; row < 3; ++row) {
      const float* in = x.data() + source[row] * kCols;
      double squares = 0;
      for (int64_t i = 0; i < kCols; ++i) squares += static_cast<double>(in[i]) * in[i];
      for (int64_t i = 0; i < kCols; ++i) {
        const double want =
            weight[static_cast<size_t>(i)] * in[i] / std::sqrt(squares / kCols + 1e-5);
        EXPECT_NEAR(out[row * kCols + static_cast<size_t>(i)], want, 1e-6);
      }
    }
  }
}

TEST(RmsNorm, ZeroRowStaysFinite) {
  const std::vector<float> zero(8, 0.0f);
  const std::vector<float> weight(8, 1.0f);
  std::vector<float> out(8, 9.0f);
  rms_norm_row(zero.data(), weight.data(), 8, 1e-5f, out.data());
  EXPECT_EQ(out, zero);
}

TEST(LayerNorm, SubtractsTheMeanAndAddsTheBias) {
  constexpr int64_t kCols = 24;
  auto x = random_values("x", kCols);
  for (float& value : x) value += 5;
  const std::vector<float> ones(kCols, 1.0f);
  const std::vector<float> bias(kCols, 0.25f);
  std::vector<float> out(kCols);
  layer_norm_row(x.data(), ones.data(), bias.data(), kCols, 1e-6f, out.data());
  double mean = 0;
  double squares = 0;
  for (const float value : out) mean += (value - 0.25) / kCols;
  for (const float value : out) squares += (value - 0.25) * (value - 0.25) / kCols;
  EXPECT_NEAR(mean, 0, 1e-6);
  EXPECT_NEAR(squares, 1, 1e-5);
}

TEST(Embed, WidensTheRowsOfTheTokens) {
  const auto table = random_values("table", 6 * 5);
  const auto narrow = rounded_to_bf16(table);
  const auto half = rounded_to_f16(table);
  const std::vector<int32_t> tokens = {5, 0, 5};
  const auto rows_of = [&](WeightFormat format, const void* data) {
    std::vector<float> out(15);
    run_on_team(2, [&](const ExecutionContext& context) {
      embed(context, {.format = format, .rows = 6, .cols = 5, .data = data}, tokens.data(), 3,
            out.data());
    });
    return out;
  };
  const auto picked = [&](const std::vector<float>& values) {
    std::vector<float> out;
    for (const int32_t token : tokens) {
      out.insert(out.end(), values.begin() + token * 5, values.begin() + token * 5 + 5);
    }
    return out;
  };
  EXPECT_EQ(rows_of(WeightFormat::kF32, table.data()), picked(table));
  EXPECT_EQ(rows_of(WeightFormat::kBF16, narrow.data()), picked(widened(narrow)));
  EXPECT_EQ(rows_of(WeightFormat::kF16, half.data()), picked(widened(half)));
}

}  // namespace
}  // namespace ingot::kernels
