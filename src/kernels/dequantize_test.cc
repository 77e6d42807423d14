#include "kernels/dequantize.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

// Shapes in which 128 x 128 and 32-value blocks are whole, partial, and both.
TEST(Dequantize, GivesTheNumbersOfEveryFormat) {
  using enum WeightFormat;
  for (const WeightFormat format : {kF32, kF16, kBF16, kFp8Block, kFp8Channel, kMxfp4}) {
    for (const auto& [rows, cols] : {std::pair{1, 2}, {5, 34}, {128, 256}, {200, 150}}) {
      const StoredMatrix matrix(format, random_values("matrix", rows * cols, 3), rows, cols);
      std::vector<float> wide(matrix.decoded().size());
      dequantize(matrix.weight(), wide.data());
      EXPECT_EQ(wide, matrix.decoded()) << name(format) << " " << rows << " x " << cols;
      std::vector<tensor::BFloat16> narrow(wide.size());
      dequantize(matrix.weight(), narrow.data());
      for (size_t i = 0; i < wide.size(); ++i) {
        ASSERT_EQ(narrow[i].bits, tensor::to_bf16(wide[i]).bits) << name(format) << " " << i;
      }
    }
  }
}

// Ranges that begin and end within and at the edges of the 128 rows of a block.
TEST(Dequantize, RowsAreThoseOfTheWhole) {
  using enum WeightFormat;
  const int64_t rows = 300;
  const int64_t cols = 150;
  for (const WeightFormat format : {kF32, kF16, kBF16, kFp8Block, kFp8Channel, kMxfp4}) {
    const StoredMatrix matrix(format, random_values("matrix", rows * cols, 3), rows, cols);
    for (const auto& [first, count] :
         {std::pair{0, 300}, {0, 1}, {127, 2}, {128, 128}, {130, 100}, {299, 1}, {5, 0}}) {
      const auto begin = matrix.decoded().begin() + first * cols;
      std::vector<float> wide(static_cast<size_t>(count * cols));
      dequantize_rows(matrix.weight(), first, count, wide.data());
      EXPECT_TRUE(std::equal(wide.begin(), wide.end(), begin))
          << name(format) << " " << first << " " << count;
      std::vector<tensor::BFloat16> narrow(wide.size());
      dequantize_rows(matrix.weight(), first, count, narrow.data());
      for (size_t i = 0; i < wide.size(); ++i) {
        ASSERT_EQ(narrow[i].bits, tensor::to_bf16(wide[i]).bits) << name(format) << " " << i;
      }
    }
  }
}

TEST(DequantizeDeathTest, RowsMustExist) {
  const StoredMatrix matrix(WeightFormat::kF32, random_values("matrix", 8), 4, 2);
  std::vector<float> out(8);
  EXPECT_DEATH(dequantize_rows(matrix.weight(), 3, 2, out.data()), "CHECK failed");
}

TEST(Dequantize, KeepsEveryFp8ByteAsItReads) {
  std::vector<uint8_t> codes(256);
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(i);
  const float scale = 0.375f;
  const Weight weight{.format = WeightFormat::kFp8Channel,
                      .rows = 1,
                      .cols = 256,
                      .data = codes.data(),
                      .scales = &scale};
  std::vector<float> out(256);
  dequantize(weight, out.data());
  for (size_t i = 0; i < codes.size(); ++i) {
    if (tensor::is_nan(tensor::Float8E4M3{codes[i]})) {
      EXPECT_TRUE(std::isnan(out[i])) << i;
    } else {
      EXPECT_EQ(out[i], tensor::to_f32(tensor::Float8E4M3{codes[i]}) * scale) << i;
      EXPECT_EQ(std::signbit(out[i]), i >= 128) << i;
    }
  }
}

TEST(Dequantize, Mxfp4ScalesAtTheEndsOfTheirRange) {
  // Row 0: bytes 0 and 1, as exporters give blocks of zeros; row 1: the largest.
  std::vector<uint8_t> codes(2 * 32, 0);
  codes[0] = 0x72;  // 1 and 6
  codes[32] = 0x02;
  const uint8_t scales[] = {0, 1, 254, 127};
  const Weight weight{.format = WeightFormat::kMxfp4,
                      .rows = 2,
                      .cols = 64,
                      .data = codes.data(),
                      .scales = scales};
  std::vector<float> out(128);
  dequantize(weight, out.data());
  EXPECT_EQ(out[0], 0x1p-127f);
  EXPECT_EQ(out[1], 6 * 0x1p-127f);
  for (size_t i = 2; i < 64; ++i) EXPECT_EQ(out[i], 0.0f);
  EXPECT_EQ(out[64], 0x1p127f);
  for (size_t i = 65; i < 128; ++i) EXPECT_EQ(out[i], 0.0f);
}

}  // namespace
}  // namespace ingot::kernels
