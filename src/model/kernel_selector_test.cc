#include "model/kernel_selector.h"

#include <gtest/gtest.h>

#include "base/arena.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::model {
namespace {

using kernels::ActivationType;
using kernels::CacheType;
using kernels::WeightFormat;

constexpr WeightFormat kFormats[] = {WeightFormat::kF32,        WeightFormat::kF16,
                                     WeightFormat::kBF16,       WeightFormat::kFp8Block,
                                     WeightFormat::kFp8Channel, WeightFormat::kMxfp4};

TEST(KernelSelector, AutomaticActivationsFollowTheFormat) {
  const std::pair<WeightFormat, ActivationType> expected[] = {
      {WeightFormat::kF32, ActivationType::kF32},
      {WeightFormat::kF16, ActivationType::kF32},
      {WeightFormat::kBF16, ActivationType::kBF16},
      {WeightFormat::kFp8Block, ActivationType::kBF16},
      {WeightFormat::kFp8Channel, ActivationType::kBF16},
      {WeightFormat::kMxfp4, ActivationType::kInt8}};
  for (const auto& [format, type] : expected) {
    EXPECT_EQ(activation_type(ActivationChoice::kAuto, format), type);
    EXPECT_EQ(activation_type(ActivationChoice::kF32, format), ActivationType::kF32);
    EXPECT_EQ(activation_type(ActivationChoice::kBF16, format), ActivationType::kBF16);
    EXPECT_EQ(activation_type(ActivationChoice::kInt8, format), ActivationType::kInt8);
  }
}

TEST(KernelSelector, CountsTheBytesOfEveryFormat) {
  // 64 x 256 numbers; two FP8 blocks, the first rows of both.
  const double bytes[] = {65536, 32768, 32768, 16384 + 2 * 4, 16384 + 64 * 4, 16384 * 0.53125};
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    KernelSelector selector(kernels::Target::kReference, ActivationChoice::kAuto, CacheType::kBF16);
    const kernels::Weight weight{.format = kFormats[i], .rows = 64, .cols = 256};
    const kernels::Weight down{.format = kFormats[i], .rows = 256, .cols = 64};
    ASSERT_TRUE(selector.linear("test", weight).has_value());
    const kernels::MlpWeights expert{.gate = weight, .up = weight, .down = down};
    ASSERT_TRUE(selector.moe(std::vector{expert, expert, expert}, 2).has_value());
    const auto ledger = selector.take_ledger();
    EXPECT_EQ(ledger.entries()[0].bytes_per_token, bytes[i]) << name(kFormats[i]);
    const double down_bytes = kFormats[i] == WeightFormat::kFp8Channel ? 16384 + 256 * 4 : bytes[i];
    EXPECT_EQ(ledger.entries()[1].bytes_per_token, 2 * (2 * bytes[i] + down_bytes));
  }
}

TEST(KernelSelector, IndexKeysAreNeverInFp8) {
  KernelSelector selector(kernels::Target::kReference, ActivationChoice::kAuto, CacheType::kFp8);
  EXPECT_TRUE(selector.index_select(16, 128).has_value());
  EXPECT_TRUE(selector.mla_attend({.format = WeightFormat::kBF16, .rows = 448, .cols = 512}, 1, 64)
                  .has_value());
  const auto ledger = selector.take_ledger();
  EXPECT_EQ(ledger.entries()[0].formats, "bf16 cache");
  EXPECT_EQ(ledger.entries()[1].formats, "bf16 x fp8 cache");
}

TEST(KernelSelector, ExpertsOfALayerShareOneFormat) {
  KernelSelector selector(kernels::Target::kReference, ActivationChoice::kAuto, CacheType::kBF16);
  const kernels::Weight bf16{.format = WeightFormat::kBF16, .rows = 32, .cols = 32};
  const kernels::Weight mxfp4{.format = WeightFormat::kMxfp4, .rows = 32, .cols = 32};
  const kernels::MlpWeights plain{.gate = bf16, .up = bf16, .down = bf16};
  const kernels::MlpWeights odd{.gate = bf16, .up = bf16, .down = mxfp4};
  const auto moe = selector.moe(std::vector{plain, odd}, 1);
  ASSERT_FALSE(moe.has_value());
  EXPECT_TRUE(moe.error().message.contains("stored in different formats"));
}

// Layers that read the same rows may want them in different types at the same time.
TEST(EncodedRows, HoldsEveryTypeAtOnce) {
  for (const int64_t cols : {1, 20, 32, 100}) {
    const auto x = kernels::random_values("x", 3 * cols);
    const auto capacity = static_cast<uint64_t>(EncodedRows::buffer_bytes(3, cols));
    base::Arena arena = base::Arena::create(base::Arena::padded(capacity), "test").value();
    std::byte* buffer = arena.allocate(capacity);
    kernels::run_on_team(2, [&](const kernels::ExecutionContext& context) {
      EncodedRows rows(context, x.data(), 3, cols, buffer);
      const auto& bf16 = rows.as(ActivationType::kBF16);
      const auto& int8 = rows.as(ActivationType::kInt8);
      EXPECT_EQ(rows.as(ActivationType::kF32).data, x.data());
      EXPECT_EQ(&rows.as(ActivationType::kBF16), &bf16);
      for (const auto* encoded : {&bf16, &int8}) {
        const kernels::StoredActivations want(encoded->type, x, 3, cols);
        EXPECT_EQ(std::memcmp(encoded->data, want.data().data(), want.data().size()), 0);
      }
    });
  }
}

}  // namespace
}  // namespace ingot::model
