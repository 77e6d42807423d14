#include "model/step_cost.h"

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"

namespace ingot::model {
namespace {

using kernels::ActivationType;
using kernels::CacheType;
using kernels::WeightFormat;
using Operation = MacKind::Operation;

constexpr MacKind kBF16{.weight = WeightFormat::kBF16, .activation = ActivationType::kBF16};
constexpr MacKind kRouter{.weight = WeightFormat::kBF16, .activation = ActivationType::kF32};
constexpr MacKind kAttention{.operation = Operation::kAttention};
constexpr MacKind kIndex{.operation = Operation::kIndex};

// Of small_config, by hand. Elements of the matrices of one layer, or of what its name says.
constexpr double kProjections = 36 * 72 + 60 * 36 + 28 * 72 + 72 * 48;  // q_a, q_b, kv_a, o
constexpr double kKvB = 3 * (12 + 16) * 20;
constexpr double kIndexKey = 10 * 72;
constexpr double kIndexQuery = 160 * 36 + 16 * 72;  // q_b and the heads' weights
constexpr double kDense = 3 * 144 * 72;
constexpr double kExpert = 3 * 40 * 72;  // a shared one is as large
constexpr double kGate = 4 * 72;
constexpr double kHead = 160 * 72;
constexpr double kAttentionPerKey = 3 * (2 * 20 + 8);
constexpr double kIndexPerKey = 16 * 10;
constexpr double kLatentRow = (20 + 8) * 2;  // bytes in bf16
constexpr double kIndexRow = 10 * 2;
constexpr double kEmbeddingRow = 72 * 2;

// The weights of small_config without bytes, published in bf16 or with experts in MXFP4.
class Shapes {
 public:
  explicit Shapes(bool mxfp4_experts = false) : config(parsed(small_config())) {
    auto tensors = published_tensors(config);
    if (mxfp4_experts) store_experts_in_mxfp4(tensors);
    write_sparse_checkpoint(scratch_.path(), tensors);
    checkpoint_ = tensor::Checkpoint::open(scratch_.path()).value();
    plan_ = plan_load(config, *checkpoint_, {}).value();
    weights = Weights::shapes_of(config, *plan_, MtpChoice::kLoad, {}).value();
  }

  StepCostModel costs(CacheType cache = CacheType::kBF16) const {
    return {config, *weights, ActivationChoice::kAuto, cache};
  }

  ModelConfig config;
  std::optional<Weights> weights;

 private:
  static void store_experts_in_mxfp4(std::vector<TensorSpec>& tensors) {
    std::vector<TensorSpec> scales;
    for (TensorSpec& tensor : tensors) {
      if (!tensor.name.contains(".mlp.experts.")) continue;
      const int64_t rows = tensor.shape[0];
      const int64_t cols = tensor.shape[1];
      tensor.dtype = DType::kU8;
      tensor.shape = {rows, cols / 2};
      scales.push_back(
          {.name = tensor.name + "_scale", .dtype = DType::kU8, .shape = {rows, (cols + 31) / 32}});
    }
    tensors.insert(tensors.end(), scales.begin(), scales.end());
  }

  base::ScratchDirectory scratch_;
  std::optional<tensor::Checkpoint> checkpoint_;
  std::optional<LoadPlan> plan_;
};

// A token with fewer keys than index_topk (6) asks no index.
TEST(StepCost, OfOneTokenIsCountedByHand) {
  const Shapes shapes;
  const StepCost cost =
      shapes.costs().main({.sequences = {{.first_position = 3}}, .logit_rows = 1});
  // Three layers, two with an indexer; one dense, two with experts of which two are chosen.
  const double linear =
      3 * kProjections + 2 * kIndexKey + kDense + 2 * kExpert + 2 * 2 * kExpert + kHead;
  EXPECT_EQ(cost.macs.at(kBF16), linear);
  EXPECT_EQ(cost.macs.at(kRouter), 2 * kGate);
  EXPECT_EQ(cost.macs.at(kAttention), 3 * (kKvB + 4 * kAttentionPerKey));
  EXPECT_FALSE(cost.macs.contains(kIndex));
  EXPECT_EQ(cost.weight_bytes, 2 * (linear + 2 * kGate + 3 * kKvB) + kEmbeddingRow);
  EXPECT_EQ(cost.cache_bytes, 3 * 4 * kLatentRow);
  EXPECT_EQ(cost.bytes(), cost.weight_bytes + cost.cache_bytes);
  EXPECT_EQ(cost.total_macs(), linear + 2 * kGate + 3 * (kKvB + 4 * kAttentionPerKey));
}

// Rows with more keys score all of them, in the layers that have an index of their own, and attend
// to six.
TEST(StepCost, BeyondTheSelectionIndexesAreAsked) {
  const Shapes shapes;
  const auto costs = shapes.costs();
  // 5 to 8 keys: two rows select.
  const StepCost cost = costs.main({.sequences = {{.first_position = 4, .count = 4}}});
  EXPECT_EQ(cost.macs.at(kAttention), 3 * (4 * kKvB + (5 + 6 + 6 + 6) * kAttentionPerKey));
  EXPECT_EQ(cost.macs.at(kIndex), 2 * (7 + 8) * kIndexPerKey);
  EXPECT_EQ(cost.cache_bytes, 3 * 6 * kLatentRow + 2 * 8 * kIndexRow);
  const double of_every_row = 3 * kProjections + 2 * kIndexKey + kDense + 2 * kExpert;
  EXPECT_EQ(cost.macs.at(kBF16), 4 * (of_every_row + 2 * 2 * kExpert) + 2 * 2 * kIndexQuery)
      << "no logits";
  // Of the four experts, four rows that choose two leave one out in 16.
  const double experts = 2 * 4 * (1 - 1.0 / 16);
  EXPECT_DOUBLE_EQ(cost.weight_bytes,
                   2 * (of_every_row + 2 * kGate + experts * kExpert + 2 * kIndexQuery + 3 * kKvB) +
                       4 * kEmbeddingRow);
}

TEST(StepCost, SequencesAddUpAndShareWeights) {
  const Shapes shapes;
  const auto costs = shapes.costs();
  StepRows one{.sequences = {{.first_position = 2}}, .logit_rows = 1, .experts_read = 4};
  StepRows two{.sequences = {{.first_position = 2}, {.first_position = 9}},
               .logit_rows = 2,
               .experts_read = 5};
  const StepCost alone = costs.main(one);
  const StepCost both = costs.main(two);
  EXPECT_EQ(both.cache_bytes - alone.cache_bytes, 3 * 6 * kLatentRow + 2 * 10 * kIndexRow);
  EXPECT_DOUBLE_EQ(both.weight_bytes - alone.weight_bytes,
                   2 * (kExpert + 2 * kIndexQuery) + kEmbeddingRow)
      << "one more expert was counted in the step";
  EXPECT_EQ(both.macs.at(kRouter), 2 * alone.macs.at(kRouter));
}

TEST(StepCost, ExpertsHaveTheirOwnFormat) {
  const Shapes shapes(/*mxfp4_experts=*/true);
  const StepCost cost = shapes.costs().main({.sequences = {{}}});
  const MacKind mxfp4{.weight = WeightFormat::kMxfp4, .activation = ActivationType::kInt8};
  EXPECT_EQ(cost.macs.at(mxfp4), 2 * 2 * kExpert);
  // gate and up have 40 rows of 36 bytes and 3 scales, down has 72 of 20 bytes and 2 scales.
  const double expert_bytes = 2 * 40 * (36 + 3) + 72 * (20 + 2);
  const double kept = 3 * kProjections + 2 * kIndexKey + kDense + 2 * kExpert;
  EXPECT_EQ(cost.weight_bytes,
            2 * (kept + 2 * kGate + 3 * kKvB) + 2 * 2 * expert_bytes + kEmbeddingRow);
}

TEST(StepCost, OfTheMtpLayer) {
  const Shapes shapes;
  const auto costs = shapes.costs();
  const double linear = kProjections + kIndexKey + kExpert + 2 * kExpert + 72 * 144;
  const StepCost written = costs.mtp({.sequences = {{.first_position = 3}}});
  EXPECT_EQ(written.macs.at(kBF16), linear);
  EXPECT_EQ(written.macs.at(kAttention), kKvB + 4 * kAttentionPerKey);
  const StepCost drafted = costs.mtp({.sequences = {{.first_position = 7}}, .logit_rows = 1});
  EXPECT_EQ(drafted.macs.at(kBF16), linear + kIndexQuery + kHead);
  EXPECT_EQ(drafted.macs.at(kIndex), 8 * kIndexPerKey);
  const StepCost reused = costs.mtp(
      {.sequences = {{.first_position = 7}}, .logit_rows = 1, .index_use = IndexUse::kReuse});
  EXPECT_EQ(reused.macs.at(kBF16), linear + kHead);
  EXPECT_FALSE(reused.macs.contains(kIndex));
}

// Index keys are never in e4m3, and a row of its latents has scales.
TEST(StepCost, CacheBytesFollowItsType) {
  const Shapes shapes;
  const StepRows rows{.sequences = {{.first_position = 9}}};
  EXPECT_EQ(shapes.costs(CacheType::kF32).main(rows).cache_bytes,
            3 * 6 * 2 * kLatentRow + 2 * 10 * 2 * kIndexRow);
  EXPECT_EQ(shapes.costs(CacheType::kFp8).main(rows).cache_bytes,
            3 * 6 * (20 + 4 + 8 * 2) + 2 * 10 * kIndexRow);
}

TEST(StepCost, ExpectedExperts) {
  EXPECT_DOUBLE_EQ(expected_experts(64, 4, 1), 4);
  EXPECT_DOUBLE_EQ(expected_experts(4, 2, 2), 3);
  EXPECT_NEAR(expected_experts(256, 8, 512), 256, 1e-4);
  EXPECT_EQ(expected_experts(8, 8, 3), 8);
  EXPECT_EQ(expected_experts(8, 2, 0), 0);
}

TEST(StepFloor, IsTheLargerOfReadingAndMultiplying) {
  StepCost cost{.weight_bytes = 90, .cache_bytes = 10};
  cost.macs[{.weight = WeightFormat::kMxfp4, .activation = ActivationType::kInt8}] = 400;
  cost.macs[kBF16] = 100;
  cost.macs[kAttention] = 20;
  const MachineRates rates{.read_bytes_per_second = 10,
                           .f32_macs_per_second = 10,
                           .bf16_macs_per_second = 50,
                           .int8_macs_per_second = 100};
  const StepFloor floor = step_floor(cost, rates);
  EXPECT_DOUBLE_EQ(floor.read_seconds, 10);
  EXPECT_DOUBLE_EQ(floor.mac_seconds, 4 + 2 + 2);
  EXPECT_DOUBLE_EQ(floor.seconds(), 10);
  cost.macs[kIndex] = 50;
  EXPECT_DOUBLE_EQ(step_floor(cost, rates).seconds(), 13);
}

// Numbers of eight bits that are floating point take the rate of f32.
TEST(StepFloor, OnlyMxfp4MultipliesAsIntegers) {
  using kernels::Arithmetic;
  constexpr auto kInt8 = ActivationType::kInt8;
  EXPECT_EQ(arithmetic({.weight = WeightFormat::kMxfp4, .activation = kInt8}), Arithmetic::kInt8);
  EXPECT_EQ(arithmetic({.weight = WeightFormat::kFp8Block, .activation = kInt8}), Arithmetic::kF32);
  EXPECT_EQ(arithmetic({.weight = WeightFormat::kFp8Block, .activation = ActivationType::kBF16}),
            Arithmetic::kBF16);
  EXPECT_EQ(arithmetic(kRouter), Arithmetic::kF32);
  EXPECT_EQ(arithmetic(kAttention), Arithmetic::kF32);
}

TEST(StepCost, KindsHaveNames) {
  EXPECT_EQ(name(kBF16), "bf16 x bf16");
  EXPECT_EQ(name(kAttention), "attention");
  EXPECT_EQ(name(kIndex), "index");
}

}  // namespace
}  // namespace ingot::model
