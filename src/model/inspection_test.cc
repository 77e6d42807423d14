#include "model/inspection.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"

namespace ingot::model {
namespace {

struct Counts {
  const char* file;
  int64_t parameters;
  int64_t tensors;
};

// Counted in the published files. GLM-4.7-Flash and DeepSeek repeat embedding and head in the MTP
// layer, and the copies count.
class PublishedCounts : public testing::TestWithParam<Counts> {};

TEST_P(PublishedCounts, FollowFromTheConfigAlone) {
  const Counts& expected = GetParam();
  const Inspection inspection = inspect_config(parsed(golden_config(expected.file)));
  EXPECT_EQ(inspection.parameters, expected.parameters);
  EXPECT_EQ(inspection.tensors, expected.tensors);
  EXPECT_EQ(inspection.bytes, 0U);
  int64_t parameters = 0;
  int64_t tensors = 0;
  for (const ModuleSummary& module : inspection.modules) {
    parameters += module.parameters;
    tensors += module.tensors;
    EXPECT_TRUE(module.formats.empty());
  }
  EXPECT_EQ(parameters, inspection.parameters);
  EXPECT_EQ(tensors, inspection.tensors);
}

INSTANTIATE_TEST_SUITE_P(Models, PublishedCounts,
                         testing::Values(Counts{"configs/glm-5.1.json", 753864139008, 59870},
                                         Counts{"configs/glm-5.2.json", 753329940480, 59585},
                                         Counts{"configs/glm-5.2-fp8.json", 753329940480, 59585},
                                         Counts{"configs/glm-4.7-flash.json", 31221488576, 9703},
                                         Counts{"configs/deepseek-v3.json", 684489845504, 46183}));

// The published DeepSeek-V3 stores attention and MLPs as FP8, with a scale tensor each.
TEST(Inspection, WithFp8ScalesDeepseekV3Has91991Tensors) {
  const ModelConfig config = parsed(golden_config("configs/deepseek-v3.json"));
  const auto parameters = list_parameters(config);
  const auto scales = std::ranges::count_if(parameters, [](const Parameter& parameter) {
    const std::string_view name = parameter.name;
    return parameter.is_linear() && parameter.role != Role::kRouter &&
           (name.contains(".self_attn.") || name.contains(".mlp."));
  });
  EXPECT_EQ(inspect_config(config).tensors + scales, 91991);
}

TEST(Inspection, DividesGlm52IntoModules) {
  const Inspection inspection = inspect_config(parsed(golden_config("configs/glm-5.2.json")));
  const auto billions = [&](ModuleClass module_class) {
    return std::round(static_cast<double>(inspection.of(module_class).parameters) / 1e6) / 1e3;
  };
  EXPECT_EQ(billions(ModuleClass::kEmbedding), 0.952);
  EXPECT_EQ(billions(ModuleClass::kLmHead), 0.952);
  EXPECT_EQ(billions(ModuleClass::kRoutedExperts), 724.776);
  EXPECT_EQ(billions(ModuleClass::kSharedExperts), 2.831);
  EXPECT_EQ(billions(ModuleClass::kDenseMlp), 0.679);
  EXPECT_EQ(billions(ModuleClass::kRouter), 0.118);
  EXPECT_EQ(billions(ModuleClass::kIndexer), 0.197);
  EXPECT_NEAR(billions(ModuleClass::kAttention) + billions(ModuleClass::kIndexer), 13.07, 0.005);
  EXPECT_NEAR(billions(ModuleClass::kMtp), 9.95, 0.005);
}

TEST(Inspection, CountsWhatATokenUses) {
  const Inspection inspection = inspect_config(parsed(golden_config("configs/glm-5.2.json")));
  EXPECT_NEAR(inspection.active_parameters, 40.30e9, 0.005e9);
  EXPECT_NEAR(inspection.of(ModuleClass::kRoutedExperts).active, 22.65e9, 0.005e9);
  EXPECT_EQ(inspection.of(ModuleClass::kEmbedding).active, 0);
  EXPECT_EQ(inspection.of(ModuleClass::kMtp).active, 0);
  const ModuleSummary& head = inspection.of(ModuleClass::kLmHead);
  EXPECT_EQ(head.active, static_cast<double>(head.parameters));
}

TEST(Inspection, OfAPlanCountsFormatsAndBytes) {
  const base::ScratchDirectory scratch;
  const ModelConfig config = parsed(small_config());
  auto tensors = published_tensors(config);
  TensorSpec& quantized = tensor_named(tensors, "model.layers.1.mlp.shared_experts.up_proj.weight");
  quantized.dtype = DType::kF8E4M3;
  tensors.push_back({.name = "model.layers.1.mlp.shared_experts.up_proj.weight_scale",
                     .dtype = DType::kF32,
                     .shape = {40, 1}});
  write_sparse_checkpoint(scratch.path(), tensors);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  ASSERT_TRUE(plan.check().has_value()) << plan.check().error().message;

  const Inspection stored = inspect_plan(config, plan);
  const Inspection described = inspect_config(config);
  EXPECT_EQ(stored.parameters, described.parameters);
  EXPECT_EQ(stored.active_parameters, described.active_parameters);
  EXPECT_EQ(stored.tensors, static_cast<int64_t>(tensors.size())) << "scales included";
  EXPECT_EQ(stored.bytes, checkpoint.size_bytes());
  const auto& formats = stored.of(ModuleClass::kSharedExperts).formats;
  EXPECT_EQ(formats.at("fp8_channel").parameters, 1);
  EXPECT_EQ(formats.at("fp8_channel").bytes, 40U * 72 + 40 * 4);
  EXPECT_EQ(formats.at("bf16").parameters, 2 * 3 - 1);

  const auto row =
      std::ranges::find_if(plan.rows, [](const PlanRow& r) { return r.stored.scales != nullptr; });
  ASSERT_NE(row, plan.rows.end());
  const auto object = to_json(*row, checkpoint);
  EXPECT_EQ(object.at("name"), "model.layers.1.mlp.shared_experts.up_proj.weight");
  EXPECT_EQ(object.at("module"), "model.layers.1.mlp.shared_experts.up_proj");
  EXPECT_EQ(object.at("class"), "shared experts");
  EXPECT_EQ(object.at("layer"), 1);
  EXPECT_EQ(object.at("shape"), json_of("[40, 72]"));
  EXPECT_EQ(object.at("format"), "fp8_channel");
  EXPECT_EQ(object.at("rule"), "F8_E4M3 with weight_scale per output row");
  EXPECT_EQ(object.at("partition"), "rows");
  EXPECT_EQ(object.at("file"), "model.safetensors");
  EXPECT_EQ(object.at("bytes"), 40 * 72 + 40 * 4);
}

TEST(Inspection, SaysHowParametersAreHeld) {
  const base::ScratchDirectory scratch;
  const ModelConfig config = parsed(small_config());
  auto tensors = published_tensors(config);
  const std::string quantized = "model.layers.0.self_attn.kv_b_proj";
  tensor_named(tensors, quantized + ".weight").dtype = DType::kF8E4M3;
  tensors.push_back(
      {.name = quantized + ".weight_scale_inv", .dtype = DType::kF32, .shape = {1, 1}});
  write_sparse_checkpoint(scratch.path(), tensors);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  for (const PlanRow& row : plan.rows) {
    const std::string expected = row.parameter.optional            ? "not loaded"
                                 : row.parameter.shape.rank() == 1 ? "f32"
                                                                   : "bf16";
    EXPECT_EQ(runtime_format(row), expected) << row.parameter.name;
  }
}

}  // namespace
}  // namespace ingot::model
