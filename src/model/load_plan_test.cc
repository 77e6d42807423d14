#include "model/load_plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"

namespace ingot::model {
namespace {

using kernels::WeightFormat;

constexpr const char* kExpert = "model.layers.1.mlp.shared_experts.up_proj";  // [40, 72]
constexpr const char* kAttention = "model.layers.0.self_attn.q_b_proj";       // [60, 36]

// Header and config of a small model, which a test changes before it is planned.
class LoadPlanTest : public testing::Test {
 protected:
  LoadPlan plan() {
    const ModelConfig parsed_config = parsed(config);
    if (checkpoint_) {
      scratch_.emplace();
      checkpoint_.reset();
    }
    write_sparse_checkpoint(scratch_->path(), tensors);
    auto opened = tensor::Checkpoint::open(scratch_->path());
    CHECK(opened.has_value(), opened ? "" : opened.error().message);
    checkpoint_.emplace(*std::move(opened));
    return plan_load(parsed_config, *checkpoint_, {}).value();
  }

  void add(const std::string& name, DType dtype, tensor::Shape shape) {
    tensors.push_back({.name = name, .dtype = dtype, .shape = shape});
  }

  void store_as_fp8(const std::string& module, const char* scale, tensor::Shape scale_shape) {
    tensor_named(tensors, module + ".weight").dtype = DType::kF8E4M3;
    add(module + scale, DType::kF32, scale_shape);
  }

  void store_as_mxfp4(const std::string& module, const char* suffix) {
    TensorSpec& tensor = tensor_named(tensors, module + ".weight");
    const int64_t out = tensor.shape[0];
    const int64_t in = tensor.shape[1];
    tensor = {.name = module + suffix, .dtype = DType::kU8, .shape = {out, in / 2}};
    add(module + ".weight_scale", DType::kU8, {out, (in + 31) / 32});
  }

  // The only finding.
  Finding finding() {
    const LoadPlan result = plan();
    EXPECT_EQ(result.findings.size(), 1U);
    for (const Finding& found : result.findings) {
      EXPECT_FALSE(found.message.empty() || found.remedy.empty()) << found.line();
      EXPECT_FALSE(found.line().contains('\n')) << found.line();
    }
    return result.findings.empty() ? Finding{} : result.findings.front();
  }

  void expect_error(std::string_view code, std::string_view subject, std::string_view message) {
    const Finding found = finding();
    EXPECT_EQ(found.severity, Severity::kError);
    EXPECT_EQ(found.code, code);
    EXPECT_EQ(found.subject, subject);
    EXPECT_TRUE(found.line().contains(message)) << found.line() << "\nshould say: " << message;
  }

  // One way of storing a linear layer: it loads, by this rule, as this format.
  void expect_format(const std::string& module, WeightFormat format, FormatRule rule) {
    const LoadPlan result = plan();
    EXPECT_TRUE(result.findings.empty()) << result.findings.front().line();
    const auto row = std::ranges::find_if(
        result.rows, [&](const PlanRow& r) { return r.parameter.module() == module; });
    ASSERT_NE(row, result.rows.end());
    EXPECT_EQ(row->stored.format, format) << name(row->stored.format);
    EXPECT_EQ(row->stored.rule, rule) << description(row->stored.rule);
    EXPECT_EQ(row->stored.scales != nullptr, rule != FormatRule::kDtype);
    EXPECT_FALSE(description(rule).empty());
  }

  base::json::object config = small_config();
  std::vector<TensorSpec> tensors = published_tensors(parsed(small_config()));

 private:
  std::optional<base::ScratchDirectory> scratch_{std::in_place};
  std::optional<tensor::Checkpoint> checkpoint_;
};

TEST_F(LoadPlanTest, AcceptsThePublishedForm) {
  const LoadPlan result = plan();
  EXPECT_TRUE(result.check().has_value());
  EXPECT_TRUE(result.findings.empty());
  EXPECT_TRUE(result.has_mtp);
  EXPECT_EQ(result.rows.size(), tensors.size());
}

TEST_F(LoadPlanTest, AcceptsEveryUnquantizedType) {
  for (const auto& [dtype, format] :
       {std::pair(DType::kF32, WeightFormat::kF32), std::pair(DType::kF16, WeightFormat::kF16),
        std::pair(DType::kBF16, WeightFormat::kBF16)}) {
    for (TensorSpec& tensor : tensors) tensor.dtype = dtype;
    const LoadPlan result = plan();
    EXPECT_TRUE(result.check().has_value()) << "the routers' biases too: " << tensor::name(dtype);
    for (const Finding& found : result.findings) {
      EXPECT_EQ(found.code, "rounded_router_bias");
      EXPECT_EQ(found.severity, Severity::kWarning);
    }
    EXPECT_EQ(result.findings.empty(), dtype == DType::kF32);
    for (const PlanRow& row : result.rows) EXPECT_EQ(row.stored.format, format);
  }
}

TEST_F(LoadPlanTest, AcceptsFp8InBlocks) {
  store_as_fp8(kAttention, ".weight_scale_inv", {1, 1});
  expect_format(kAttention, WeightFormat::kFp8Block, FormatRule::kFp8BlockScaleInv);
}

TEST_F(LoadPlanTest, AcceptsFp8InBlocksAsQuarkRenamesTheScale) {
  const std::string dense = "model.layers.0.mlp.gate_proj";  // [144, 72]: the last block partial
  store_as_fp8(dense, ".weight_scale", {2, 1});
  expect_format(dense, WeightFormat::kFp8Block, FormatRule::kFp8BlockScale);
}

TEST_F(LoadPlanTest, AcceptsFp8PerChannel) {
  store_as_fp8(kExpert, ".weight_scale", {40, 1});
  expect_format(kExpert, WeightFormat::kFp8Channel, FormatRule::kFp8ChannelScale);
}

TEST_F(LoadPlanTest, AcceptsFp8PerChannelInAVector) {
  store_as_fp8(kExpert, ".weight_scale", {40});
  expect_format(kExpert, WeightFormat::kFp8Channel, FormatRule::kFp8ChannelScale);
}

TEST_F(LoadPlanTest, AcceptsMxfp4AsQuarkWritesIt) {
  store_as_mxfp4(kExpert, ".weight");
  expect_format(kExpert, WeightFormat::kMxfp4, FormatRule::kMxfp4Quark);
}

TEST_F(LoadPlanTest, AcceptsMxfp4AsCompressedTensorsWritesIt) {
  store_as_mxfp4(kExpert, ".weight_packed");
  expect_format(kExpert, WeightFormat::kMxfp4, FormatRule::kMxfp4CompressedTensors);
}

// AMD's GLM-5-MXFP4: routed experts quantized, shared ones and the whole MTP layer in bf16.
TEST_F(LoadPlanTest, AcceptsSharedExpertsInAnotherFormatThanRoutedOnes) {
  for (int layer = 1; layer <= 2; ++layer) {
    for (int expert = 0; expert < 4; ++expert) {
      for (const char* part : {"gate_proj", "up_proj", "down_proj"}) {
        store_as_mxfp4(fmt::format("model.layers.{}.mlp.experts.{}.{}", layer, expert, part),
                       ".weight");
      }
    }
  }
  const LoadPlan result = plan();
  EXPECT_TRUE(result.findings.empty()) << result.findings.front().line();
  for (const PlanRow& row : result.rows) {
    const bool routed = row.parameter.module_class == ModuleClass::kRoutedExperts;
    EXPECT_EQ(row.stored.format == WeightFormat::kMxfp4, routed) << row.parameter.name;
  }
}

TEST_F(LoadPlanTest, AcceptsCopiesOfEmbeddingAndHeadInTheMtpLayer) {
  add("model.layers.3.embed_tokens.weight", DType::kBF16, {160, 72});
  add("model.layers.3.shared_head.head.weight", DType::kBF16, {160, 72});
  const LoadPlan result = plan();
  EXPECT_TRUE(result.findings.empty()) << result.findings.front().line();
  EXPECT_EQ(result.rows.size(), tensors.size());
}

TEST_F(LoadPlanTest, ChecksTheShapeOfCopiesToo) {
  add("model.layers.3.embed_tokens.weight", DType::kBF16, {159, 72});
  expect_error("unusable_tensor", "model.layers.3.embed_tokens.weight", "[159, 72]");
}

TEST_F(LoadPlanTest, RefusesATensorThatNothingClaims) {
  add("model.layers.0.self_attn.q_norm.weight", DType::kBF16, {12});
  expect_error("unclaimed_tensor", "model.layers.0.self_attn.q_norm.weight",
               "no parameter of this model has this name; config.json and weights do not belong");
}

TEST_F(LoadPlanTest, RefusesExpertsBeyondTheConfig) {
  add("model.layers.1.mlp.experts.4.up_proj.weight", DType::kBF16, {40, 72});
  expect_error("unclaimed_tensor", "model.layers.1.mlp.experts.4.up_proj.weight", "no parameter");
}

TEST_F(LoadPlanTest, ShowsNoControlCharacters) {
  add("evil\n\x1b[2J", DType::kBF16, {1});
  EXPECT_EQ(finding().line().substr(0, 10), "evil??[2J:");
}

TEST_F(LoadPlanTest, RefusesAMissingTensor) {
  remove_tensors(tensors, "model.layers.1.mlp.gate.e_score_correction_bias");
  expect_error("missing_tensor", "model.layers.1.mlp.gate.e_score_correction_bias",
               "missing from the checkpoint; download the shard that holds it");
}

TEST_F(LoadPlanTest, RefusesAnotherShape) {
  tensor_named(tensors, "model.embed_tokens.weight").shape = {72, 160};
  expect_error("unusable_tensor", "model.embed_tokens.weight",
               "BF16 [72, 160] in the file, but config.json asks for [160, 72]; config.json and "
               "weights are of different models");
}

TEST_F(LoadPlanTest, RefusesAnotherRank) {
  tensor_named(tensors, "model.norm.weight").shape = {1, 72};
  expect_error("unusable_tensor", "model.norm.weight", "asks for [72]");
}

TEST_F(LoadPlanTest, RefusesATypeThatNoWeightHas) {
  for (const DType dtype : {DType::kF64, DType::kI8, DType::kF8E5M2, DType::kBool}) {
    tensor_named(tensors, "lm_head.weight").dtype = dtype;
    expect_error("unusable_tensor", "lm_head.weight",
                 fmt::format("dtype {}; Ingot reads F32", tensor::name(dtype)));
  }
}

TEST_F(LoadPlanTest, RefusesAQuantizedNorm) {
  tensor_named(tensors, "model.norm.weight").dtype = DType::kF8E4M3;
  expect_error("unusable_tensor", "model.norm.weight", "dtype F8_E4M3; expected F32, F16 or BF16");
}

TEST_F(LoadPlanTest, RefusesFp8WithoutAScale) {
  tensor_named(tensors, std::string(kExpert) + ".weight").dtype = DType::kF8E4M3;
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "F8_E4M3 without weight_scale_inv or weight_scale; download the shard");
}

TEST_F(LoadPlanTest, RefusesTwoScales) {
  store_as_fp8(kExpert, ".weight_scale_inv", {1, 1});
  add(std::string(kExpert) + ".weight_scale", DType::kF32, {40, 1});
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "both weight_scale_inv and weight_scale are present; remove the wrong one");
}

TEST_F(LoadPlanTest, RefusesAnFp8ScaleOfAnotherShape) {
  store_as_fp8(kExpert, ".weight_scale_inv", {40, 1});  // rows have no inverse scale
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "its scale has shape [40, 1]; expected [1, 1] for 128 x 128 blocks or [40, 1]");
}

TEST_F(LoadPlanTest, RefusesAnFp8ScaleOfAnotherType) {
  store_as_fp8(kExpert, ".weight_scale", {40, 1});
  tensors.back().dtype = DType::kBF16;
  expect_error("unusable_tensor", std::string(kExpert) + ".weight", "its scale is BF16");
}

TEST_F(LoadPlanTest, RefusesAScaleBesideUnquantizedValues) {
  add(std::string(kExpert) + ".weight_scale", DType::kU8, {40, 3});
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "BF16 values and yet a scale tensor");
}

TEST_F(LoadPlanTest, RefusesMxfp4WithoutAScale) {
  store_as_mxfp4(kExpert, ".weight_packed");
  tensors.pop_back();
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "packed U8 values without weight_scale");
}

TEST_F(LoadPlanTest, RefusesNvfp4) {
  store_as_mxfp4(kExpert, ".weight");
  tensors.back().dtype = DType::kF8E4M3;
  tensors.back().shape = {40, 5};
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "with a weight_scale of F8_E4M3 [40, 5]; MXFP4 has U8 [40, 3]");
}

TEST_F(LoadPlanTest, RefusesPackedValuesBesidePlainOnes) {
  add(std::string(kExpert) + ".weight_packed", DType::kU8, {40, 36});
  expect_error("unusable_tensor", std::string(kExpert) + ".weight",
               "both weight and weight_packed are present");
}

TEST_F(LoadPlanTest, RefusesPackedIntegersOfAnotherKind) {
  store_as_mxfp4(kExpert, ".weight_packed");
  tensor_named(tensors, std::string(kExpert) + ".weight_packed").dtype = DType::kI32;
  expect_error("unusable_tensor", std::string(kExpert) + ".weight", "weight_packed is I32");
}

TEST_F(LoadPlanTest, RefusesPackedValuesOfAnotherShape) {
  store_as_mxfp4(kExpert, ".weight");
  tensor_named(tensors, std::string(kExpert) + ".weight").shape = {40, 35};
  expect_error("unusable_tensor", std::string(kExpert) + ".weight", "asks for [40, 36]");
}

TEST_F(LoadPlanTest, RefusesAnIndexerInASharedLayer) {
  add("model.layers.2.self_attn.indexer.wk.weight", DType::kBF16, {10, 72});
  expect_error("unexpected_indexer", "model.layers.2.self_attn.indexer.wk.weight",
               "an indexer in a layer that config.json makes \"shared\"; give config.json the");
}

TEST_F(LoadPlanTest, RefusesAnUnknownTensorOfAnIndexer) {
  add("model.layers.1.self_attn.indexer.wz.weight", DType::kBF16, {10, 72});
  expect_error("unclaimed_tensor", "model.layers.1.self_attn.indexer.wz.weight", "no parameter");
}

TEST_F(LoadPlanTest, RefusesAFullLayerWithoutItsIndexer) {
  remove_tensors(tensors, "model.layers.1.self_attn.indexer.");
  const LoadPlan result = plan();
  EXPECT_EQ(result.count(Severity::kError), 5U);
  for (const Finding& found : result.findings) {
    EXPECT_EQ(found.code, "missing_indexer");
    EXPECT_TRUE(
        found.line().contains("makes this layer's indexer \"full\"; give config.json the "
                              "published indexer_types"));
  }
}

TEST_F(LoadPlanTest, NotesAnMtpLayerThatIsMissingWhole) {
  remove_tensors(tensors, "model.layers.3.");
  const Finding found = finding();
  EXPECT_EQ(found.severity, Severity::kNote);
  EXPECT_EQ(found.code, "no_mtp_layer");
  EXPECT_TRUE(found.remedy.contains("without speculation"));
  EXPECT_TRUE(plan().check().has_value());
  EXPECT_FALSE(plan().has_mtp);
}

TEST_F(LoadPlanTest, RefusesAnMtpLayerThatIsMissingInPart) {
  remove_tensors(tensors, "model.layers.3.hnorm.weight");
  EXPECT_FALSE(plan().has_mtp);
  expect_error("missing_tensor", "model.layers.3.hnorm.weight", "missing from the checkpoint");
}

TEST_F(LoadPlanTest, RefusesTheCopiesOfAnMtpLayerAlone) {
  remove_tensors(tensors, "model.layers.3.");
  add("model.layers.3.embed_tokens.weight", DType::kBF16, {160, 72});
  const LoadPlan result = plan();
  EXPECT_FALSE(result.has_mtp);
  EXPECT_TRUE(result.check().error().message.contains("model.layers.3.enorm.weight"));
}

TEST_F(LoadPlanTest, RefusesAnMtpLayerThatTheConfigDoesNotAnnounce) {
  config["num_nextn_predict_layers"] = 0;
  const LoadPlan result = plan();
  EXPECT_FALSE(result.has_mtp);
  for (const Finding& found : result.findings) {
    EXPECT_EQ(found.code, "unannounced_mtp");
    EXPECT_TRUE(found.line().contains("set \"num_nextn_predict_layers\" to 1"));
  }
  const auto of_mtp = [](const TensorSpec& t) { return t.name.starts_with("model.layers.3."); };
  EXPECT_EQ(result.findings.size(), static_cast<size_t>(std::ranges::count_if(tensors, of_mtp)));
}

// The remedy for a re-saved checkpoint is not to download what is missing.
TEST_F(LoadPlanTest, RefusesFusedExpertsAndDoesNotCallThemMissing) {
  remove_tensors(tensors, "model.layers.1.mlp.experts.");
  add("model.layers.1.mlp.experts.gate_up_proj", DType::kBF16, {4, 80, 72});
  add("model.layers.1.mlp.experts.down_proj", DType::kBF16, {4, 72, 40});
  const LoadPlan result = plan();
  EXPECT_EQ(result.findings.size(), 2U);
  for (const Finding& found : result.findings) {
    EXPECT_EQ(found.code, "fused_experts");
    EXPECT_TRUE(found.line().contains("one 3-D tensor")) << found.line();
  }
}

TEST_F(LoadPlanTest, WarnsOfKeysThatItDoesNotRead) {
  config["new_trick"] = 10;
  const Finding found = finding();
  EXPECT_EQ(found.severity, Severity::kWarning);
  EXPECT_EQ(found.code, "unread_config_key");
  EXPECT_EQ(found.subject, "config.json: \"new_trick\"");
}

TEST_F(LoadPlanTest, RefusesMixedFormatsAmongTheExpertsOfALayer) {
  const std::string expert = "model.layers.1.mlp.experts.2.up_proj.weight";
  tensor_named(tensors, expert).dtype = DType::kF32;
  const Finding found = finding();
  EXPECT_EQ(found.code, "mixed_expert_formats");
  EXPECT_EQ(found.severity, Severity::kError);
  EXPECT_EQ(found.subject, expert);
}

TEST_F(LoadPlanTest, SummarizesOneLineAKind) {
  config["new_trick"] = 1;
  config["newer_trick"] = 2;
  const auto lines = summarize(plan().findings);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].contains("new_trick")) << lines[0];
  EXPECT_TRUE(lines[0].contains("(2 like it: ingot inspect lists all)")) << lines[0];
}

TEST_F(LoadPlanTest, CountsFurtherErrors) {
  remove_tensors(tensors, "model.norm.weight");
  EXPECT_FALSE(plan().check().error().message.contains("further"));
  remove_tensors(tensors, "lm_head.weight");
  add("extra", DType::kBF16, {1});
  const std::string message = plan().check().error().message;
  EXPECT_TRUE(message.contains("(2 further errors: ingot inspect lists all)")) << message;
}

TEST_F(LoadPlanTest, RefusesSeveralRanks) {
  const base::ScratchDirectory scratch;
  write_sparse_checkpoint(scratch.path(), tensors);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const ModelConfig parsed_config = parsed(config);
  for (const Rank rank : {Rank{0, 2}, Rank{1, 2}, Rank{1, 1}, Rank{0, 0}, Rank{-1, 1}}) {
    const auto result = plan_load(parsed_config, checkpoint, rank);
    ASSERT_FALSE(result.has_value());
    EXPECT_TRUE(result.error().message.contains("no tensor parallelism")) << result.error().message;
  }
}

TEST_F(LoadPlanTest, DoesNotDependOnTheOrderInTheFile) {
  const LoadPlan before = plan();
  std::vector<std::string> names;
  for (const PlanRow& row : before.rows) names.push_back(row.parameter.name);
  std::ranges::reverse(tensors);
  const LoadPlan after = plan();
  ASSERT_EQ(after.rows.size(), names.size());
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(after.rows[i].parameter.name, names[i]);
    EXPECT_EQ(after.rows[i].stored.data->name, names[i]);
  }
}

TEST_F(LoadPlanTest, HashDependsOnConfigAndHeaders) {
  const auto hash = [&](std::string_view config_text) {
    const base::ScratchDirectory scratch;
    write_sparse_checkpoint(scratch.path(), tensors);
    return model_hash(config_text, tensor::Checkpoint::open(scratch.path()).value());
  };
  const std::string first = hash("{}");
  EXPECT_EQ(first.size(), 16U);
  EXPECT_EQ(hash("{}"), first);
  EXPECT_NE(hash("{ }"), first);
  tensors.front().dtype = DType::kF16;
  EXPECT_NE(hash("{}"), first);
}

}  // namespace
}  // namespace ingot::model
