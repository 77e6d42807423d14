#include "kernels/activations.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/activation_rows.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

std::vector<std::byte> encoded(ActivationType type, const std::vector<float>& values, int64_t rows,
                               int64_t cols, int threads) {
  std::vector<std::byte> buffer(static_cast<size_t>(rows * activation_row_bytes(type, cols)),
                                std::byte{0xAA});
  run_on_team(threads, [&](const ExecutionContext& context) {
    const Activations x =
        encode_activations(context, values.data(), rows, cols, type, buffer.data());
    EXPECT_EQ(x.type, type);
    EXPECT_EQ(x.rows, rows);
    EXPECT_EQ(x.cols, cols);
    EXPECT_EQ(x.data, buffer.data());
  });
  return buffer;
}

TEST(EncodeActivations, EveryTypeAndShape) {
  for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
    for (const int64_t cols : {1, 31, 32, 33, 100, 256}) {
      const auto values = random_values("x", 5 * cols, 3);
      const StoredActivations want(type, values, 5, cols);
      for (const int threads : {1, 2, 3}) {
        EXPECT_EQ(encoded(type, values, 5, cols, threads), want.data())
            << name(type) << " " << cols << " columns, " << threads << " threads";
      }
    }
  }
}

TEST(EncodeActivations, F32IsNotCopied) {
  const auto values = random_values("x", 12);
  run_on_team(1, [&](const ExecutionContext& context) {
    const Activations x =
        encode_activations(context, values.data(), 3, 4, ActivationType::kF32, nullptr);
    EXPECT_EQ(x.data, values.data());
  });
}

TEST(EncodeActivations, Int8ByHand) {
  // Blocks: halves that round to even under a scale of 1, zeros, and a partial one.
  std::vector<float> values(70, 0.0f);
  values[0] = 127;
  values[1] = 0.5f;
  values[2] = 1.5f;
  values[3] = -2.5f;
  values[4] = -127;
  values[64] = -63.5f;
  values[65] = 1;
  const auto bytes = encoded(ActivationType::kInt8, values, 1, 70, 1);
  ASSERT_EQ(bytes.size(), 3 * sizeof(Int8Block));
  const Int8ActivationRow row({ActivationType::kInt8, 1, 70, bytes.data()}, 0);
  const float want[] = {127, 0, 2, -2, -127};
  for (int64_t k = 0; k < 5; ++k) EXPECT_EQ(row.value(k), want[k]);
  EXPECT_EQ(row.block_scale(0), 1.0f);
  EXPECT_EQ(row.block_scale(32), 0.0f);
  EXPECT_EQ(row.block_scale(64), 0.5f);
  for (int64_t k = 32; k < 64; ++k) EXPECT_EQ(row.value(k), 0.0f);
  EXPECT_EQ(row.value(64), -127.0f);
  EXPECT_EQ(row.value(65), 2.0f);
  for (int64_t k = 70; k < 96; ++k) EXPECT_EQ(row.value(k), 0.0f);  // what fills the last block
}

// Neither the scale nor the steps may leave their range, however small the values are.
TEST(EncodeActivations, Int8OfTheSmallestFloats) {
  for (const float largest : {0x1p-149f, 0x1p-144f, 190 * 0x1p-149f, 0x1p-126f, 3e38f}) {
    const auto bytes = encoded(ActivationType::kInt8, {largest, -largest, largest / 2}, 1, 3, 1);
    const Int8ActivationRow row({ActivationType::kInt8, 1, 3, bytes.data()}, 0);
    EXPECT_GE(row.value(0), 0.0f);
    EXPECT_LE(row.value(0), 127.0f);
    EXPECT_EQ(row.value(1), -row.value(0));
    EXPECT_LE(row.value(0) * row.block_scale(0), largest * 1.0001f);
  }
}

TEST(EncodeActivations, Int8KeepsNonFiniteVisible) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    std::vector<float> values(64, 1.0f);
    values[40] = bad;
    const auto bytes = encoded(ActivationType::kInt8, values, 1, 64, 1);
    const Int8ActivationRow row({ActivationType::kInt8, 1, 64, bytes.data()}, 0);
    EXPECT_EQ(row.value(0), 127.0f);
    EXPECT_EQ(row.block_scale(0), 1.0f / 127);
    for (int64_t k = 32; k < 64; ++k) EXPECT_TRUE(std::isnan(row.value(k) * row.block_scale(32)));
  }
}

}  // namespace
}  // namespace ingot::kernels
