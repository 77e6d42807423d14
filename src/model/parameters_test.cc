#include "model/parameters.h"

#include <algorithm>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "model/config_fixture.h"

namespace ingot::model {
namespace {

const Parameter& named(const std::vector<Parameter>& parameters, std::string_view name) {
  const auto found = std::ranges::find(parameters, name, &Parameter::name);
  CHECK(found != parameters.end(), name);
  return *found;
}

bool has(const std::vector<Parameter>& parameters, std::string_view name) {
  return std::ranges::find(parameters, name, &Parameter::name) != parameters.end();
}

TEST(Parameters, HaveThePublishedNamesAndShapes) {
  const auto list = list_parameters(parsed(golden_config("configs/glm-5.2.json")));
  struct Expected {
    const char* name;
    tensor::Shape shape;
  };
  const Expected expected[] = {
      {"model.embed_tokens.weight", {154880, 6144}},
      {"model.norm.weight", {6144}},
      {"lm_head.weight", {154880, 6144}},
      {"model.layers.0.input_layernorm.weight", {6144}},
      {"model.layers.0.post_attention_layernorm.weight", {6144}},
      {"model.layers.0.self_attn.q_a_proj.weight", {2048, 6144}},
      {"model.layers.0.self_attn.q_a_layernorm.weight", {2048}},
      {"model.layers.0.self_attn.q_b_proj.weight", {16384, 2048}},
      {"model.layers.0.self_attn.kv_a_proj_with_mqa.weight", {576, 6144}},
      {"model.layers.0.self_attn.kv_a_layernorm.weight", {512}},
      {"model.layers.0.self_attn.kv_b_proj.weight", {28672, 512}},
      {"model.layers.0.self_attn.o_proj.weight", {6144, 16384}},
      {"model.layers.0.self_attn.indexer.wq_b.weight", {4096, 2048}},
      {"model.layers.0.self_attn.indexer.wk.weight", {128, 6144}},
      {"model.layers.0.self_attn.indexer.k_norm.weight", {128}},
      {"model.layers.0.self_attn.indexer.k_norm.bias", {128}},
      {"model.layers.0.self_attn.indexer.weights_proj.weight", {32, 6144}},
      {"model.layers.2.mlp.gate_proj.weight", {12288, 6144}},
      {"model.layers.2.mlp.up_proj.weight", {12288, 6144}},
      {"model.layers.2.mlp.down_proj.weight", {6144, 12288}},
      {"model.layers.3.mlp.gate.weight", {256, 6144}},
      {"model.layers.3.mlp.gate.e_score_correction_bias", {256}},
      {"model.layers.3.mlp.experts.255.gate_proj.weight", {2048, 6144}},
      {"model.layers.3.mlp.experts.255.up_proj.weight", {2048, 6144}},
      {"model.layers.3.mlp.experts.255.down_proj.weight", {6144, 2048}},
      {"model.layers.3.mlp.shared_experts.gate_proj.weight", {2048, 6144}},
      {"model.layers.3.mlp.shared_experts.down_proj.weight", {6144, 2048}},
      {"model.layers.78.enorm.weight", {6144}},
      {"model.layers.78.hnorm.weight", {6144}},
      {"model.layers.78.eh_proj.weight", {6144, 12288}},
      {"model.layers.78.shared_head.norm.weight", {6144}},
      {"model.layers.78.self_attn.indexer.wk.weight", {128, 6144}},
      {"model.layers.78.mlp.experts.0.up_proj.weight", {2048, 6144}},
  };
  for (const Expected& parameter : expected) {
    EXPECT_EQ(named(list, parameter.name).shape, parameter.shape) << parameter.name;
  }
  for (const char* absent :
       {"model.layers.3.self_attn.indexer.wk.weight", "model.layers.3.mlp.gate_proj.weight",
        "model.layers.2.mlp.gate.weight", "model.layers.3.mlp.experts.256.up_proj.weight",
        "model.layers.79.input_layernorm.weight"}) {
    EXPECT_FALSE(has(list, absent)) << absent;
  }
}

TEST(Parameters, AreNamedOnceAndFillDistinctSlots) {
  for (const char* file :
       {"configs/glm-5.2.json", "configs/glm-4.7-flash.json", "configs/deepseek-v3.2.json"}) {
    const auto list = list_parameters(parsed(golden_config(file)));
    std::set<std::string_view> names;
    std::set<std::tuple<int32_t, int32_t, Role>> slots;
    for (const Parameter& parameter : list) {
      EXPECT_TRUE(names.insert(parameter.name).second) << parameter.name;
      EXPECT_TRUE(slots.insert({parameter.layer, parameter.expert, parameter.role}).second)
          << parameter.name;
    }
  }
}

TEST(Parameters, KnowWhereTheyBelong) {
  const auto list = list_parameters(parsed(golden_config("configs/glm-5.2.json")));
  const Parameter& expert = named(list, "model.layers.3.mlp.experts.17.down_proj.weight");
  EXPECT_EQ(expert.layer, 3);
  EXPECT_EQ(expert.expert, 17);
  EXPECT_EQ(expert.role, Role::kExpertDown);
  EXPECT_EQ(expert.module_class, ModuleClass::kRoutedExperts);
  EXPECT_EQ(expert.module(), "model.layers.3.mlp.experts.17.down_proj");
  EXPECT_TRUE(expert.is_linear());
  const Parameter& shared = named(list, "model.layers.3.mlp.shared_experts.up_proj.weight");
  EXPECT_EQ(shared.expert, -1);
  EXPECT_EQ(shared.role, Role::kSharedUp);
  const Parameter& bias = named(list, "model.layers.3.mlp.gate.e_score_correction_bias");
  EXPECT_EQ(bias.module(), "model.layers.3.mlp.gate.e_score_correction_bias");
  EXPECT_FALSE(bias.is_linear());
  EXPECT_EQ(bias.module_class, ModuleClass::kRouter);
  EXPECT_FALSE(named(list, "model.embed_tokens.weight").is_linear());
  EXPECT_EQ(named(list, "model.embed_tokens.weight").layer, -1);
  EXPECT_TRUE(named(list, "lm_head.weight").is_linear());
  EXPECT_EQ(named(list, "model.layers.78.self_attn.q_a_proj.weight").module_class,
            ModuleClass::kMtp);
}

TEST(Parameters, AreDividedAmongRanksByKind) {
  const auto list = list_parameters(parsed(golden_config("configs/glm-5.2.json")));
  const auto partition = [&](std::string_view name) {
    return std::string(ingot::model::name(named(list, name).partition));
  };
  EXPECT_EQ(partition("model.embed_tokens.weight"), "rows");
  EXPECT_EQ(partition("model.norm.weight"), "replicated");
  EXPECT_EQ(partition("model.layers.0.self_attn.q_a_proj.weight"), "replicated");
  EXPECT_EQ(partition("model.layers.0.self_attn.q_b_proj.weight"), "heads");
  EXPECT_EQ(partition("model.layers.0.self_attn.kv_b_proj.weight"), "heads");
  EXPECT_EQ(partition("model.layers.0.self_attn.o_proj.weight"), "columns");
  EXPECT_EQ(partition("model.layers.0.mlp.up_proj.weight"), "rows");
  EXPECT_EQ(partition("model.layers.0.mlp.down_proj.weight"), "columns");
  EXPECT_EQ(partition("model.layers.3.mlp.experts.0.down_proj.weight"), "experts");
  EXPECT_EQ(partition("model.layers.3.mlp.shared_experts.down_proj.weight"), "columns");
}

TEST(Parameters, CopiesOfEmbeddingAndHeadAreOptional) {
  const auto list = list_parameters(parsed(golden_config("configs/glm-4.7-flash.json")));
  for (const Parameter& parameter : list) {
    const bool copy = parameter.name == "model.layers.47.embed_tokens.weight" ||
                      parameter.name == "model.layers.47.shared_head.head.weight";
    EXPECT_EQ(parameter.optional, copy) << parameter.name;
  }
  EXPECT_TRUE(has(list, "model.layers.47.shared_head.head.weight"));
  EXPECT_FALSE(has(list, "model.layers.0.self_attn.indexer.wk.weight"));
}

TEST(Parameters, FollowAModelWithoutSharedExpertsOrMtp) {
  auto config = small_config();
  config["n_shared_experts"] = 0;
  config["num_nextn_predict_layers"] = 0;
  for (const Parameter& parameter : list_parameters(parsed(config))) {
    EXPECT_FALSE(parameter.name.contains("shared_experts")) << parameter.name;
    EXPECT_LT(parameter.layer, 3) << parameter.name;
  }
  config["n_shared_experts"] = 2;
  const auto list = list_parameters(parsed(config));
  EXPECT_EQ(named(list, "model.layers.1.mlp.shared_experts.up_proj.weight").shape,
            (tensor::Shape{80, 72}));
}

}  // namespace
}  // namespace ingot::model
