#include "kernels/activations.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/activation_rows.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

std::vector<std::byte> encoded(ActivationType type, const std::vector<float>& values, int64_t rows,
                               int64_t cols, int threads, Target target = Target::kReference) {
  std::vector<std::byte> buffer(static_cast<size_t>(rows * activation_row_bytes(type, cols)),
                                std::byte{0xAA});
  run_on_team(
      threads,
      [&](const ExecutionContext& context) {
        const Activations x =
            encode_activations(context, values.data(), rows, cols, type, buffer.data());
        EXPECT_EQ(x.type, type);
        EXPECT_EQ(x.rows, rows);
        EXPECT_EQ(x.cols, cols);
        EXPECT_EQ(x.data, buffer.data());
      },
      target);
  return buffer;
}

TEST(EncodeActivations, EveryTypeAndShape) {
  for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
    for (const int64_t cols : {1, 31, 32, 33, 100, 256, 257, 700}) {
      const auto values = random_values("x", 5 * cols, 3);
      const StoredActivations want(type, values, 5, cols);
      for (const Target target : usable_targets()) {
        for (const int threads : {1, 2, 3}) {
          EXPECT_EQ(encoded(type, values, 5, cols, threads, target), want.data())
              << name(type) << " " << name(target) << " " << cols << " columns, " << threads
              << " threads";
        }
      }
    }
  }
}

// Ties of either rounding, both zeros, values of every size, and blocks that are not finite.
TEST(EncodeActivations, EveryTargetGivesTheSameBytes) {
  constexpr int64_t kCols = 40 * 32 + 7;
  auto values = random_values("x", kCols, 3);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 3 == 0) values[i] = std::round(values[i] * 8) / 16;
    const size_t block = i / 32;
    if (block % 4 == 1) values[i] = std::ldexp(values[i], static_cast<int>(block) * 8 - 190);
    if (block == 2) values[i] = i % 2 == 0 ? 0.0f : -0.0f;
    if (block == 3) values[i] = std::bit_cast<float>(0x3F808000u + static_cast<uint32_t>(i << 16));
  }
  values[6 * 32 + 5] = std::numeric_limits<float>::infinity();
  values[8 * 32] = -std::nanf("");
  values[10 * 32 + 31] = std::bit_cast<float>(0x7F800001u);  // bf16 has no place for this payload
  for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
    const auto want = encoded(type, values, 1, kCols, 1, Target::kReference);
    for (const Target target : usable_targets()) {
      EXPECT_EQ(encoded(type, values, 1, kCols, 2, target), want) << name(type);
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
  for (const Target target : usable_targets()) {
    const auto bytes = encoded(ActivationType::kInt8, values, 1, 70, 1, target);
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
}

// Neither the scale nor the steps may leave their range, however small the values are.
TEST(EncodeActivations, Int8OfTheSmallestFloats) {
  for (const float largest : {0x1p-149f, 0x1p-144f, 190 * 0x1p-149f, 0x1p-126f, 3e38f}) {
    for (const Target target : usable_targets()) {
      const auto bytes =
          encoded(ActivationType::kInt8, {largest, -largest, largest / 2}, 1, 3, 1, target);
      const Int8ActivationRow row({ActivationType::kInt8, 1, 3, bytes.data()}, 0);
      EXPECT_GE(row.value(0), 0.0f);
      EXPECT_LE(row.value(0), 127.0f);
      EXPECT_EQ(row.value(1), -row.value(0));
      EXPECT_LE(row.value(0) * row.block_scale(0), largest * 1.0001f);
    }
  }
}

TEST(EncodeActivations, Int8KeepsNonFiniteVisible) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {infinity, -infinity, std::nanf("")}) {
    std::vector<float> values(64, 1.0f);
    values[40] = bad;
    for (const Target target : usable_targets()) {
      const auto bytes = encoded(ActivationType::kInt8, values, 1, 64, 1, target);
      const Int8ActivationRow row({ActivationType::kInt8, 1, 64, bytes.data()}, 0);
      EXPECT_EQ(row.value(0), 127.0f);
      EXPECT_EQ(row.block_scale(0), 1.0f / 127);
      for (int64_t k = 32; k < 64; ++k) EXPECT_TRUE(std::isnan(row.value(k) * row.block_scale(32)));
    }
  }
}

TEST(SiluMultiply, EncodesWhatTheNextLayerReads) {
  constexpr int64_t kRows = 3;
  for (const int64_t cols : {1, 8, 37, 256, 300}) {
    const auto gate = random_values("gate", kRows * cols, 4);
    const auto up = random_values("up", kRows * cols);
    for (const Target target : usable_targets()) {
      for (const int threads : {1, 2}) {
        auto product = gate;
        run_on_team(
            threads,
            [&](const ExecutionContext& context) {
              const auto f32 = silu_multiply(context, product.data(), up.data(), kRows, cols,
                                             ActivationType::kF32, nullptr);
              EXPECT_EQ(f32.data, product.data());
            },
            target);
        for (size_t i = 0; i < product.size(); ++i) {
          const double want = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i];
          ASSERT_NEAR(product[i], want, 4e-7 * std::abs(want)) << name(target);
        }
        for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
          const StoredActivations want(type, product, kRows, cols);
          auto scratch = gate;
          std::vector<std::byte> bytes(want.data().size());
          run_on_team(
              threads,
              [&](const ExecutionContext& context) {
                const auto x = silu_multiply(context, scratch.data(), up.data(), kRows, cols, type,
                                             bytes.data());
                EXPECT_EQ(x.data, bytes.data());
              },
              target);
          EXPECT_EQ(bytes, want.data()) << name(type) << " " << name(target);
        }
      }
    }
  }
}

// One by one as in a row of any length: what a value becomes does not depend on its place.
TEST(SiluMultiply, NeitherPlaceNorNeighboursMatter) {
  auto gate = random_values("gate", 45, 30);
  gate[3] = std::numeric_limits<float>::infinity();
  gate[11] = std::nanf("");
  gate[40] = -std::numeric_limits<float>::infinity();
  const auto up = random_values("up", 45);
  for (const Target target : usable_targets()) {
    const SiluMultiplyRow activate = row_operations(target).silu_multiply;
    std::vector<float> together(45);
    activate(gate.data(), up.data(), 45, together.data());
    for (size_t i = 0; i < gate.size(); ++i) {
      float alone[2] = {0, -7};
      activate(gate.data() + i, up.data() + i, 1, alone);
      EXPECT_EQ(std::bit_cast<uint32_t>(alone[0]), std::bit_cast<uint32_t>(together[i])) << i;
      EXPECT_EQ(alone[1], -7);
    }
    EXPECT_TRUE(std::isnan(together[11]) && std::isnan(together[40]));  // -inf / inf
    EXPECT_EQ(std::abs(together[3]), std::numeric_limits<float>::infinity());
  }
}

}  // namespace
}  // namespace ingot::kernels
