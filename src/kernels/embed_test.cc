#include "kernels/embed.h"

#include <algorithm>
#include <bit>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

TEST(Embed, WidensTheRowsOfTheTokens) {
  const std::vector<int32_t> tokens = {5, 0, 5};
  for (const int64_t cols : {5, 8, 19}) {
    const auto table = random_values("table", 6 * cols);
    const auto narrow = rounded_to_bf16(table);
    const auto half = rounded_to_f16(table);
    const auto picked = [&](const std::vector<float>& values) {
      std::vector<float> out;
      for (const int32_t token : tokens) {
        const auto row = values.begin() + token * cols;
        out.insert(out.end(), row, row + cols);
      }
      return out;
    };
    for (const Target target : usable_targets()) {
      const auto rows_of = [&](WeightFormat format, const void* data) {
        std::vector<float> out(static_cast<size_t>(3 * cols));
        run_on_team(
            2,
            [&](const ExecutionContext& context) {
              embed(context, {.format = format, .rows = 6, .cols = cols, .data = data},
                    tokens.data(), 3, out.data());
            },
            target);
        return out;
      };
      EXPECT_EQ(rows_of(WeightFormat::kF32, table.data()), picked(table));
      EXPECT_EQ(rows_of(WeightFormat::kBF16, narrow.data()), picked(widened(narrow)));
      EXPECT_EQ(rows_of(WeightFormat::kF16, half.data()), picked(widened(half)));
    }
  }
}

// All 65,536 of each type, compared by their bits where they are no NaN.
TEST(Embed, EveryStoredValueIsExact) {
  std::vector<tensor::Float16> half;
  std::vector<tensor::BFloat16> narrow;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    half.push_back({static_cast<uint16_t>(bits)});
    narrow.push_back({static_cast<uint16_t>(bits)});
  }
  const auto same = [](float a, float b) {
    return a != a ? b != b : std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  for (const Target target : usable_targets()) {
    std::vector<float> out(half.size());
    row_operations(target).widen_f16(half.data(), 0x10000, out.data());
    EXPECT_TRUE(std::ranges::equal(out, widened(half), same)) << name(target);
    row_operations(target).widen_bf16(narrow.data(), 0x10000, out.data());
    EXPECT_TRUE(std::ranges::equal(out, widened(narrow), same)) << name(target);
  }
}

TEST(Add, AddsEveryValueOnce) {
  for (const int64_t count : {0, 1, 7, 8, 33, 100}) {
    const auto x = random_values("x", count);
    const auto y = random_values("y", count);
    for (const Target target : usable_targets()) {
      for (const int threads : {1, 3}) {
        auto sum = x;
        run_on_team(
            threads,
            [&](const ExecutionContext& context) { add(context, sum.data(), y.data(), count); },
            target);
        for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(sum[i], x[i] + y[i]);
      }
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
