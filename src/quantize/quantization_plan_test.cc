#include "quantize/quantization_plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "quantize/plan_fixture.h"

namespace ingot::quantize {
namespace {

using model::ModuleClass;
using tensor::DType;
using tensor::Shape;
using tensor::TensorSpec;

Recipe recipe_of(std::vector<RecipeRule> rules) {
  return {.name = "mine", .description = "a test", .rules = std::move(rules)};
}

// What the parameters of a class become; vectors aside.
std::map<ModuleClass, std::set<Treatment>> treatments(const QuantizationPlan& plan) {
  std::map<ModuleClass, std::set<Treatment>> found;
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      if (!tensor.parameter.is_linear()) continue;
      found[tensor.parameter.module_class].insert(tensor.treatment);
    }
  }
  return found;
}

void expect_output(const PlannedTensor& tensor, size_t index, const std::string& name, DType dtype,
                   const Shape& shape) {
  ASSERT_LT(index, tensor.outputs.size()) << name;
  EXPECT_EQ(tensor.outputs[index].name, name);
  EXPECT_EQ(tensor.outputs[index].dtype, dtype) << name;
  EXPECT_EQ(tensor.outputs[index].shape, shape) << name;
}

void expect_refused(const base::Result<QuantizationPlan>& plan,
                    std::initializer_list<std::string_view> parts) {
  ASSERT_FALSE(plan.has_value());
  for (const std::string_view part : parts) {
    EXPECT_TRUE(plan.error().message.contains(part))
        << plan.error().message << "\nshould say: " << part;
  }
  EXPECT_FALSE(plan.error().message.contains('\n')) << plan.error().message;
}

TEST(QuantizationPlan, SaysWhatEveryTensorBecomes) {
  PlannedModel model(model::small_config());
  const QuantizationPlan plan = model.plan("amd-glm-5.2");
  EXPECT_EQ(plan.recipe.name, "amd-glm-5.2");
  ASSERT_EQ(plan.shards.size(), 1U);
  EXPECT_EQ(plan.shards[0].file_name, "model.safetensors");
  EXPECT_EQ(plan.shards[0].tensors.size(), model.tensors.size());
  EXPECT_EQ(plan.source_bytes, model.checkpoint().size_bytes());

  const PlannedTensor* expert = find(plan, "model.layers.1.mlp.experts.3.up_proj");  // [40, 72]
  ASSERT_NE(expert, nullptr);
  EXPECT_EQ(expert->treatment, Treatment::kMxfp4);
  EXPECT_EQ(expert->rule, "*mlp.experts.*");
  EXPECT_FALSE(expert->is_copied());
  expect_output(*expert, 0, "model.layers.1.mlp.experts.3.up_proj.weight", DType::kU8, {40, 36});
  expect_output(*expert, 1, "model.layers.1.mlp.experts.3.up_proj.weight_scale", DType::kU8,
                {40, 3});
  EXPECT_EQ(expert->output_bytes, 40U * 36 + 40 * 3);

  const PlannedTensor* router = find(plan, "model.layers.1.mlp.gate");
  EXPECT_EQ(router->rule, "*mlp.gate");
  EXPECT_TRUE(router->is_copied());
  expect_output(*router, 0, "model.layers.1.mlp.gate.weight", DType::kBF16, {4, 72});
  EXPECT_EQ(router->outputs.size(), 1U);

  const PlannedTensor* bias = find(plan, "model.layers.1.mlp.gate.e_score_correction_bias");
  EXPECT_EQ(bias->rule, "a vector");
  EXPECT_EQ(bias->outputs.front().dtype, DType::kF32);
  EXPECT_TRUE(bias->is_copied());
  EXPECT_EQ(find(plan, "model.embed_tokens")->rule, "an embedding");
  EXPECT_EQ(find(plan, "model.layers.3.eh_proj")->rule, "model.layers.{mtp}.*");
}

TEST(QuantizationPlan, CountsBytes) {
  PlannedModel model(model::small_config());
  const QuantizationPlan plan = model.plan("amd-glm-5.2", 3);
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
  for (const PlannedShard& shard : plan.shards) {
    uint64_t shard_bytes = 0;
    for (const PlannedTensor& tensor : shard.tensors) {
      uint64_t tensor_bytes = 0;
      for (const TensorSpec& output : tensor.outputs) tensor_bytes += model::data_bytes(output);
      EXPECT_EQ(tensor.output_bytes, tensor_bytes);
      if (tensor.is_copied()) {
        EXPECT_EQ(tensor_bytes, tensor.source.size_bytes());
      }
      shard_bytes += tensor_bytes;
    }
    EXPECT_EQ(shard.output_bytes, shard_bytes);
    source_bytes += shard.source_bytes;
    output_bytes += shard_bytes;
  }
  EXPECT_EQ(plan.source_bytes, source_bytes);
  EXPECT_EQ(plan.output_bytes, output_bytes);
  EXPECT_LT(plan.output_bytes, plan.source_bytes);
}

// The table of docs/formats/recipe.md.
TEST(QuantizationPlan, BuiltInRecipesDecideAsTheyAreDescribed) {
  using enum ModuleClass;
  const std::set<Treatment> kept = {Treatment::kKeep};
  const std::set<Treatment> mxfp4 = {Treatment::kMxfp4};
  const std::set<Treatment> fp8 = {Treatment::kFp8Channel};
  struct Case {
    const char* recipe;
    const char* config;
    std::set<Treatment> attention, indexer, dense, shared, head;
  };
  const Case cases[] = {
      {"amd-glm-5", "glm-5.1", kept, kept, kept, kept, kept},
      {"amd-glm-5.2", "glm-5.2", kept, kept, kept, mxfp4, kept},
      {"amd-glm-5.2-attn-fp8",
       "glm-5.2",
       fp8,
       {Treatment::kKeep, Treatment::kFp8Channel},
       fp8,
       mxfp4,
       fp8},
      {"deepseek-v3.2", "deepseek-v3", kept, {}, mxfp4, mxfp4, kept},
      {"deepseek-v3.2", "deepseek-v3.2", kept, kept, mxfp4, mxfp4, kept},
      {"glm-4.7-flash", "glm-4.7-flash", kept, {}, mxfp4, mxfp4, kept},
      {"experts-mxfp4-rest-fp8",
       "glm-5.2",
       fp8,
       {Treatment::kKeep, Treatment::kFp8Channel},
       fp8,
       mxfp4,
       fp8},
      {"experts-mxfp4-rest-fp8", "glm-4.7-flash", fp8, {}, fp8, mxfp4, fp8},
      {"experts-only", "glm-5.2", kept, kept, kept, kept, kept},
      {"experts-only", "deepseek-v3", kept, {}, kept, kept, kept},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(std::string(c.recipe) + " " + c.config);
    base::json::object config = model::golden_config(std::string("configs/") + c.config + ".json");
    config["n_routed_experts"] = 8;  // enough to see what becomes of them
    config["num_experts_per_tok"] = 2;
    config["n_group"] = 1;
    config["topk_group"] = 1;
    PlannedModel model(config);
    auto found = treatments(model.plan(c.recipe));
    EXPECT_EQ(found[kAttention], c.attention);
    EXPECT_EQ(found[kIndexer], c.indexer);
    EXPECT_EQ(found[kDenseMlp], c.dense);
    EXPECT_EQ(found[kSharedExperts], c.shared);
    EXPECT_EQ(found[kLmHead], c.head);
    EXPECT_EQ(found[kRouter], kept);
    EXPECT_EQ(found[kRoutedExperts], mxfp4);
    EXPECT_EQ(found[kMtp], kept);
  }
}

TEST(QuantizationPlan, Fp8AttentionKeepsTheIndexersKeysAndWeights) {
  PlannedModel model(model::small_config());
  const QuantizationPlan plan = model.plan("amd-glm-5.2-attn-fp8");
  const std::string attention = "model.layers.1.self_attn.";
  EXPECT_EQ(find(plan, attention + "indexer.weights_proj")->treatment, Treatment::kKeep);
  EXPECT_EQ(find(plan, attention + "indexer.wk")->treatment, Treatment::kKeep);
  EXPECT_EQ(find(plan, attention + "indexer.wq_b")->treatment, Treatment::kFp8Channel);
  const PlannedTensor* projection = find(plan, attention + "kv_b_proj");  // [84, 20]
  expect_output(*projection, 0, attention + "kv_b_proj.weight", DType::kF8E4M3, {84, 20});
  expect_output(*projection, 1, attention + "kv_b_proj.weight_scale", DType::kF32, {84});
  EXPECT_EQ(projection->output_bytes, 84U * 20 + 84 * 4);
}

// A model without the MTP layer, and one whose MTP layer repeats embedding and head.
TEST(QuantizationPlan, TheMtpLayerMayBeMissingOrHaveCopies) {
  base::json::object config = model::small_config();
  config["num_nextn_predict_layers"] = 0;
  PlannedModel without(config);
  EXPECT_FALSE(treatments(without.plan("amd-glm-5.2")).contains(ModuleClass::kMtp));

  PlannedModel copies(model::small_config());
  for (const char* name : {"embed_tokens", "shared_head.head"}) {
    copies.tensors.push_back(
        {"model.layers.3." + std::string(name) + ".weight", DType::kBF16, {160, 72}});
  }
  const QuantizationPlan plan = copies.plan("amd-glm-5.2");
  EXPECT_TRUE(find(plan, "model.layers.3.embed_tokens")->is_copied());
  EXPECT_TRUE(find(plan, "model.layers.3.shared_head.head")->is_copied());
  EXPECT_TRUE(std::ranges::binary_search(plan.exclude, "model.layers.3.shared_head.head"));
  EXPECT_FALSE(std::ranges::binary_search(plan.exclude, "model.layers.3.embed_tokens"));
}

TEST(QuantizationPlan, ExcludesKeptMatricesByExactNames) {
  PlannedModel model(model::small_config());
  const QuantizationPlan plan = model.plan("amd-glm-5.2");
  EXPECT_TRUE(std::ranges::is_sorted(plan.exclude));
  const std::set<std::string> excluded(plan.exclude.begin(), plan.exclude.end());
  EXPECT_EQ(excluded.size(), plan.exclude.size());
  for (const TensorSpec& tensor : model.tensors) {
    if (!tensor.name.ends_with(".weight")) continue;  // the router's bias is not its weight
    const std::string module = tensor.name.substr(0, tensor.name.rfind('.'));
    const bool expected = tensor.shape.rank() == 2 && module != "model.embed_tokens" &&
                          find(plan, module)->treatment == Treatment::kKeep;
    EXPECT_EQ(excluded.contains(module), expected) << module;
  }
}

// Data of the file that Quark 0.13 wrote for these seven tensors lie in this order.
TEST(QuantizationPlan, WritesInTheOrderOfQuark) {
  const std::string layer = "model.layers.3.";
  const std::string expert = layer + "mlp.experts.";
  const std::vector<std::pair<TensorSpec, model::Role>> source = {
      {{expert + "1.gate_proj.weight", DType::kF32, {35, 64}}, model::Role::kExpertGate},
      {{layer + "mlp.gate.weight", DType::kF32, {8, 64}}, model::Role::kRouter},
      {{"model.embed_tokens.weight", DType::kBF16, {4, 64}}, model::Role::kEmbedding},
      {{layer + "input_layernorm.weight", DType::kBF16, {64}}, model::Role::kInputNorm},
      {{expert + "0.gate_proj.weight", DType::kBF16, {35, 64}}, model::Role::kExpertGate},
      {{layer + "self_attn.o_proj.weight", DType::kBF16, {64, 32}}, model::Role::kO},
      {{expert + "2.gate_proj.weight", DType::kF16, {28, 64}}, model::Role::kExpertGate}};
  const base::ScratchDirectory scratch;
  std::vector<TensorSpec> specs;
  for (const auto& [spec, role] : source) specs.push_back(spec);
  model::write_sparse_checkpoint(scratch.path(), specs);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  model::LoadPlan rows;
  for (const auto& [spec, role] : source) {
    rows.rows.push_back({{.name = spec.name, .role = role, .shape = spec.shape},
                         {.data = checkpoint.find(spec.name)}});
  }
  const Recipe recipe = recipe_of({{"*self_attn*", Treatment::kKeep},
                                   {"*mlp.gate", Treatment::kKeep},
                                   {"*", Treatment::kMxfp4}});
  const QuantizationPlan plan = plan_quantization({}, rows, checkpoint, recipe).value();
  std::string order;
  for (const PlannedTensor& tensor : plan.shards.at(0).tensors) {
    for (const TensorSpec& output : tensor.outputs) {
      order += fmt::format("{} {} {}\n", output.name, tensor::name(output.dtype),
                           output.shape.to_string());
    }
  }
  EXPECT_EQ(order,
            "model.layers.3.mlp.gate.weight F32 [8, 64]\n"
            "model.embed_tokens.weight BF16 [4, 64]\n"
            "model.layers.3.input_layernorm.weight BF16 [64]\n"
            "model.layers.3.self_attn.o_proj.weight BF16 [64, 32]\n"
            "model.layers.3.mlp.experts.0.gate_proj.weight U8 [35, 32]\n"
            "model.layers.3.mlp.experts.0.gate_proj.weight_scale U8 [35, 2]\n"
            "model.layers.3.mlp.experts.1.gate_proj.weight U8 [35, 32]\n"
            "model.layers.3.mlp.experts.1.gate_proj.weight_scale U8 [35, 2]\n"
            "model.layers.3.mlp.experts.2.gate_proj.weight U8 [28, 32]\n"
            "model.layers.3.mlp.experts.2.gate_proj.weight_scale U8 [28, 2]\n");
}

// Python's loaders view bytes as elements, which fails at an odd address.
TEST(QuantizationPlan, EveryOutputIsAligned) {
  for (const char* recipe :
       {"amd-glm-5.2", "amd-glm-5.2-attn-fp8", "experts-mxfp4-rest-fp8", "experts-only"}) {
    PlannedModel model(model::small_config());
    model::tensor_named(model.tensors, "model.norm.weight").dtype = DType::kF32;
    model::tensor_named(model.tensors, "lm_head.weight").dtype = DType::kF16;
    uint64_t offset = 0;
    const QuantizationPlan plan = model.plan(recipe);
    for (const PlannedTensor& tensor : plan.shards.at(0).tensors) {
      for (const TensorSpec& output : tensor.outputs) {
        EXPECT_EQ(offset % tensor::size_bytes(output.dtype), 0U) << recipe << " " << output.name;
        offset += model::data_bytes(output);
      }
    }
  }
}

TEST(QuantizationPlan, Fp8SourcesAreDecodedOrQuantized) {
  PlannedModel model(model::small_config());
  const std::string kept = "model.layers.0.self_attn.o_proj";
  const std::string expert = "model.layers.1.mlp.experts.0.up_proj";
  for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
    for (const char* number : {"0", "1", "2", "3"}) {
      model.store_as_fp8("model.layers.1.mlp.experts." + std::string(number) + "." + projection);
    }
  }
  model.store_as_fp8(kept);
  // Scales are the last tensors, so the last of these files holds nothing else.
  const QuantizationPlan plan = model.plan("amd-glm-5.2", model.tensors.size() / 4);
  EXPECT_LT(plan.shards.size(), model.checkpoint().files().size());
  const PlannedTensor* decoded = find(plan, kept);
  EXPECT_FALSE(decoded->is_copied());
  ASSERT_EQ(decoded->outputs.size(), 1U);
  expect_output(*decoded, 0, kept + ".weight", DType::kBF16, {72, 48});
  EXPECT_TRUE(std::ranges::binary_search(plan.exclude, kept));

  const PlannedTensor* quantized = find(plan, expert);
  expect_output(*quantized, 0, expert + ".weight", DType::kU8, {40, 36});
  EXPECT_NE(quantized->source.data->file, quantized->source.scales->file);
  uint64_t source_bytes = 0;
  for (const PlannedShard& shard : plan.shards) {
    EXPECT_FALSE(shard.tensors.empty());
    source_bytes += shard.source_bytes;
    for (const PlannedTensor& tensor : shard.tensors) {
      EXPECT_EQ(model.checkpoint().path_of(*tensor.source.data).filename(), shard.file_name);
    }
  }
  EXPECT_EQ(source_bytes, model.checkpoint().size_bytes());
}

TEST(QuantizationPlan, RefusesRulesThatDoNotFit) {
  PlannedModel model(model::small_config());
  expect_refused(model.plan(recipe_of({{"*self_atn*", Treatment::kKeep}, {"*", Treatment::kKeep}})),
                 {"recipe mine", "\"*self_atn*\" matches no linear layer",
                  "the nearest is model.layers.0.self_attn."});
  expect_refused(
      model.plan(recipe_of({{"*", Treatment::kKeep}, {"*.experts.*", Treatment::kMxfp4}})),
      {"rules before it decide every module that \"*.experts.*\" matches"});
  expect_refused(model.plan(recipe_of({{"model.*", Treatment::kKeep}})),
                 {"lm_head: no rule of recipe mine says what becomes of it"});
  // The misspelt rule, and not the module that it leaves undecided.
  expect_refused(
      model.plan(recipe_of({{"lm_haed", Treatment::kKeep}, {"model.*", Treatment::kKeep}})),
      {"\"lm_haed\" matches no linear layer", "the nearest is lm_head"});
  // Recipes of other families.
  base::json::object config = model::golden_config("configs/glm-4.7-flash.json");
  config["n_routed_experts"] = 8;
  PlannedModel flash(config);
  expect_refused(flash.plan(load_recipe("amd-glm-5.2-attn-fp8").value()),
                 {"\"*self_attn.indexer.weights_proj\" matches no linear layer"});
}

TEST(QuantizationPlan, RefusesExpertsOfOneLayerInTwoFormats) {
  PlannedModel model(model::small_config());
  expect_refused(model.plan(recipe_of({{"*.experts.*.down_proj", Treatment::kFp8Channel},
                                       {"*.experts.*", Treatment::kMxfp4},
                                       {"*", Treatment::kKeep}})),
                 {"model.layers.1.mlp.experts.0.down_proj is fp8-channel by "
                  "\"*.experts.*.down_proj\"",
                  "model.layers.1.mlp.experts.0.gate_proj is mxfp4 by \"*.experts.*\"", "alike"});
}

TEST(QuantizationPlan, RefusesShapesThatCannotBePacked) {
  base::json::object config = model::small_config();
  config["moe_intermediate_size"] = 41;
  PlannedModel odd(config);
  expect_refused(odd.plan(load_recipe("amd-glm-5.2").value()),
                 {"model.layers.1.mlp.experts.0.down_proj.weight: 41 columns", "keep it"});

  config = model::small_config();
  config["vocab_size"] = 161;
  config["hidden_size"] = 74;
  PlannedModel unaligned(config);
  expect_refused(
      unaligned.plan(recipe_of({{"lm_head", Treatment::kFp8Channel}, {"*", Treatment::kKeep}})),
      {"lm_head.weight: 11914 values in FP8"});
}

TEST(QuantizationPlan, RefusesWhatIsMxfp4Already) {
  PlannedModel model(model::small_config());
  const std::string module = "model.layers.0.self_attn.o_proj";  // kept, and still the wrong source
  TensorSpec& weight = model::tensor_named(model.tensors, module + ".weight");
  weight.dtype = DType::kU8;
  weight.shape = {72, 24};
  model.tensors.push_back({module + ".weight_scale", DType::kU8, {72, 2}});
  expect_refused(model.plan(load_recipe("amd-glm-5.2").value()),
                 {module, "stored as MXFP4 already", "bf16 or FP8 release"});
}

TEST(QuantizationPlan, RefusesFusedExperts) {
  const std::string experts = "model.layers.1.mlp.experts.";
  PlannedModel model(model::small_config());
  model::remove_tensors(model.tensors, experts);
  model.tensors.push_back({experts + "down_proj", DType::kBF16, {4, 72, 40}});
  expect_refused(model.plan(load_recipe("amd-glm-5.2").value()),
                 {experts + "down_proj: [4, 72, 40] holds all experts of a layer in one 3-D tensor",
                  "slice E is " + experts + "E.down_proj.weight"});
  model.tensors.back() = {experts + "gate_up_proj", DType::kBF16, {4, 80, 72}};
  expect_refused(model.plan(load_recipe("amd-glm-5.2").value()),
                 {"of slice E, rows 0 to 39 are " + experts + "E.gate_proj.weight",
                  "rows 40 to 79 are " + experts + "E.up_proj.weight"});
  // In an order that we cannot know.
  model.tensors.back().shape = {4, 72, 80};
  expect_refused(model.plan(load_recipe("amd-glm-5.2").value()),
                 {"[4, 72, 80] holds all experts", "into " + experts + "E.gate_proj.weight"});
}

TEST(QuantizationPlan, RefusesWhatDoesNotLoad) {
  PlannedModel model(model::small_config());
  model::remove_tensors(model.tensors, "lm_head");
  expect_refused(model.plan(load_recipe("amd-glm-5.2").value()),
                 {"lm_head.weight: missing from the checkpoint"});
}

TEST(QuantizationPlan, IsDescribedInATable) {
  PlannedModel model(model::small_config());
  const std::string text = describe(model.plan("amd-glm-5.2", 2));
  EXPECT_TRUE(text.starts_with("recipe amd-glm-5.2: GLM-5.2 as AMD publishes it")) << text;
  for (const char* line : {
           "  routers         keep                4   1.18 kB ->   1.18 kB  a vector, *mlp.gate\n",
           "  routed experts  mxfp4              24    138 kB ->",
           "  shared experts  mxfp4               6   34.6 kB ->",
           "  MTP layer       keep ",
           "\n  2 files, ",
       }) {
    EXPECT_TRUE(text.contains(line)) << text << "\nshould have: " << line;
  }
  EXPECT_TRUE(
      text.contains(fmt::format("  total           {:<12} {:>8} ", "", model.tensors.size())))
      << text;
}

}  // namespace
}  // namespace ingot::quantize
