#include "kernels/dequantize.h"

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
