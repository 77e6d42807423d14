// Forms of checkpoints and configs beside the known failures: families, FP8, entries of single
// layers, forms that are not known, and lists made to take long.

#include "quantize/loader_check.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quantize/loader_fixture.h"

namespace ingot::quantize {
namespace {

class LoaderCheck : public LoaderCheckTest {};

TEST_F(LoaderCheck, NamesOfLoaders) {
  for (const Loader loader : {Loader::kSglang, Loader::kSglangBefore30265, Loader::kVllm}) {
    EXPECT_EQ(find_loader(name(loader)), loader);
  }
  EXPECT_FALSE(find_loader("llama.cpp").has_value());
}

// DeepSeek's drafts rename layer 61 in every entry, so decoder entries match and eh_proj does not.
TEST_F(LoaderCheck, DeepseekV3WithTheLayerThatSglangRenames) {
  for (const char* key : {"index_n_heads", "index_head_dim", "index_topk", "indexer_types"}) {
    config_.erase(key);
  }
  config_["model_type"] = "deepseek_v3";
  config_["architectures"] = base::json::array{"DeepseekV3ForCausalLM"};
  config_["num_hidden_layers"] = 61;
  make_quark_release();
  expect_right(Loader::kVllm);
  const LoaderReport before = report(Loader::kSglang);
  EXPECT_EQ(before.exclude_to_add, std::vector<std::string>{"model.eh_proj"});
  expect_mended_by_exclude(Loader::kSglang);
  // An expression for the whole layer leaves the whole draft unquantized.
  make_quark_release();
  remove_from_exclude("model.layers.61.");
  exclude().emplace_back("re:model.layers.61.*");
  expect_right();
}

// Its class in sglang renames nothing and never quantizes eh_proj.
TEST_F(LoaderCheck, Glm4MoeLite) {
  for (const char* key : {"index_n_heads", "index_head_dim", "index_topk", "indexer_types"}) {
    config_.erase(key);
  }
  config_["model_type"] = "glm4_moe_lite";
  config_["architectures"] = base::json::array{"Glm4MoeLiteForCausalLM"};
  make_quark_release();
  expect_right(Loader::kVllm);
  const auto missing = report(Loader::kSglang).exclude_to_add;
  EXPECT_NE(std::ranges::find(missing, "model.decoder.self_attn.o_proj"), missing.end());
  EXPECT_EQ(std::ranges::find(missing, "model.eh_proj"), missing.end());
  expect_mended_by_exclude(Loader::kSglang);
}

// vLLM holds the projection of the MTP layer in bf16 whatever the config says.
TEST_F(LoaderCheck, QuantizedMtpProjection) {
  make_quark_release();
  remove_from_exclude("model.layers.3.eh_proj");
  pack("model.layers.3.eh_proj");
  expect_right(Loader::kSglang);
  EXPECT_TRUE(expect_error(Loader::kVllm, "built_otherwise_mtp").remedy.contains("unquantized"));
}

TEST_F(LoaderCheck, QuantizedModulesThatNoLoaderQuantizes) {
  for (const char* module : {"lm_head", "model.layers.1.mlp.gate"}) {
    make_quark_release();
    pack(module);
    expect_error(Loader::kSglang, "built_otherwise");
    expect_error(Loader::kVllm, "built_otherwise");
  }
}

// The indexer's key projection: bf16 in fused form on CUDA, by the config on ROCm.
TEST_F(LoaderCheck, IndexKey) {
  make_quark_release();
  const std::string key = "model.layers.1.self_attn.indexer.wk";
  remove_from_exclude(key);
  const Finding found = finding(Loader::kSglang, "index_key");
  EXPECT_EQ(found.severity, Severity::kWarning);
  EXPECT_TRUE(found.remedy.contains("exclude_to_add")) << found.remedy;
  LoaderReport unlisted = report(Loader::kSglang);
  ASSERT_TRUE(unlisted.loads_right());
  EXPECT_EQ(unlisted.where(), " on CUDA but not on ROCm");
  EXPECT_EQ(unlisted.exclude_to_add, std::vector<std::string>{key});
  expect_right(Loader::kVllm);
  pack(key);
  EXPECT_EQ(finding(Loader::kSglang, "index_key").severity, Severity::kWarning);
  const LoaderReport packed = report(Loader::kSglang);
  ASSERT_TRUE(packed.loads_right());
  EXPECT_EQ(packed.where(), " on ROCm but not on CUDA");
  EXPECT_TRUE(packed.exclude_to_add.empty());
  expect_error(Loader::kVllm, "index_key");
  // One layer that only CUDA takes and one that only ROCm takes: no platform takes the model.
  remove_from_exclude("model.layers.0.self_attn.indexer.wk");
  EXPECT_FALSE(report(Loader::kSglang).loads_right());
  unlisted = report(Loader::kSglang);
  EXPECT_TRUE(unlisted.differs_on_cuda && unlisted.differs_on_rocm);
}

TEST_F(LoaderCheck, NamesAllTensorsOfAFinding) {
  make_quark_release();
  remove_from_exclude("self_attn.kv_b_proj");
  const LoaderReport result = report(Loader::kVllm);
  ASSERT_EQ(result.tensors_of_findings.size(), 2U) << "main layers and the MTP layer";
  for (const auto& [index, tensors] : result.tensors_of_findings) {
    ASSERT_LT(index, result.findings.size());
    const bool is_main = result.findings[index].code == "built_otherwise";
    std::vector<std::string> expected = {"model.layers.3.self_attn.kv_b_proj.weight"};
    if (is_main) {
      expected = {"model.layers.0.self_attn.kv_b_proj.weight",
                  "model.layers.1.self_attn.kv_b_proj.weight",
                  "model.layers.2.self_attn.kv_b_proj.weight"};
    }
    EXPECT_EQ(tensors, expected) << result.findings[index].code;
  }
}

// Attention in FP8 with a scale an output row, described by exact names.
TEST_F(LoaderCheck, LayerConfigOfFp8PerChannel) {
  const auto channel = model::json_of(R"({
      "weight": {"dtype": "fp8_e4m3", "qscheme": "per_channel", "is_dynamic": false},
      "input_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_channel", "is_dynamic": true},
      "output_tensors": null, "bias": null})");
  const std::string module = "model.layers.1.self_attn.o_proj";
  make_quark_release();
  remove_from_exclude(module);
  make_fp8(module, "weight_scale", {64});
  quantization()["layer_quant_config"].as_object()[module] = channel;
  expect_right();
  model::tensor_named(tensors_, module + ".weight_scale").shape = {64, 1};
  expect_error(Loader::kSglang, "scale_shape");
  expect_error(Loader::kVllm, "scale_shape");
  // Without the entry it would be MXFP4.
  quantization()["layer_quant_config"] = base::json::object{};
  EXPECT_TRUE(expect_error(Loader::kSglang, "built_otherwise").remedy.contains("per_channel"));
}

TEST_F(LoaderCheck, LayerConfigByWildcardAndByExperts) {
  const auto same = quark_test_config()["global_quant_config"];
  make_quark_release();
  auto& layers = quantization()["layer_quant_config"].as_object();
  // MXFP4 for what is MXFP4, and something else for everything else.
  quantization()["global_quant_config"].as_object()["input_tensors"] = nullptr;
  layers["*experts*"] = same;
  expect_right();
  layers.clear();
  for (int layer = 1; layer <= 2; ++layer) {
    for (int expert = 0; expert < 4; ++expert) {
      for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
        layers[fmt::format("model.layers.{}.mlp.experts.{}.{}", layer, expert, projection)] = same;
      }
    }
    layers[fmt::format("model.layers.{}.mlp.shared_experts.*", layer)] = same;
  }
  EXPECT_EQ(find(report(Loader::kSglang), "loader_refuses"), nullptr);
  expect_right(Loader::kVllm);
  layers.erase("model.layers.1.mlp.experts.2.up_proj");
  EXPECT_TRUE(expect_error(Loader::kSglang, "loader_refuses").message.contains("projections"));
}

TEST_F(LoaderCheck, Fp8ReleasesPass) {
  make_fp8_release({});
  config_["quantization_config"] = model::json_of(
      R"({"quant_method": "fp8", "activation_scheme": "dynamic", "fmt": "e4m3",
          "weight_block_size": [128, 128]})");
  expect_right();
  make_fp8_release({"model.layers.1.self_attn.kv_b_proj", "model.layers.0.mlp.gate_proj",
                    "model.layers.0.mlp.up_proj"});
  quantization()["modules_to_not_convert"] =
      base::json::array{"lm_head", "model.layers.1.self_attn.kv_b_proj",
                        "model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj"};
  expect_right();
  quantization()["modules_to_not_convert"] = base::json::array{"lm_head"};
  expect_error(Loader::kSglang, "built_otherwise");
  expect_error(Loader::kVllm, "built_otherwise");
}

// A name around modules covers them for sglang and nothing for vLLM.
TEST_F(LoaderCheck, Fp8ListsNamesAroundModules) {
  make_fp8_release({"model.layers.0.mlp.gate_proj", "model.layers.0.mlp.up_proj",
                    "model.layers.0.mlp.down_proj"});
  config_["quantization_config"] = model::json_of(
      R"({"quant_method": "fp8", "activation_scheme": "dynamic",
          "weight_block_size": [128, 128], "modules_to_not_convert": ["model.layers.0.mlp"]})");
  expect_right(Loader::kSglang);
  const Finding found = expect_error(Loader::kVllm, "built_otherwise");
  EXPECT_TRUE(found.message.contains("cast the values")) << found.message;
}

TEST_F(LoaderCheck, Fp8ScalesUnderQuarksName) {
  make_fp8_release({});
  config_["quantization_config"] = model::json_of(
      R"({"quant_method": "fp8", "activation_scheme": "dynamic",
          "weight_block_size": [128, 128]})");
  const std::string module = "model.layers.1.mlp.experts.0.up_proj";
  model::tensor_named(tensors_, module + ".weight_scale_inv").name = module + ".weight_scale";
  expect_error(Loader::kSglang, "scale_name");
  expect_error(Loader::kVllm, "scale_name");
  quantization().erase("weight_block_size");
  expect_error(Loader::kVllm, "loader_config");
}

TEST_F(LoaderCheck, UnquantizedReleasePassesAndNeedsNoConfig) {
  tensors_ = model::published_tensors(model::parsed(config_));
  expect_right();
  pack("model.layers.1.mlp.experts.0.up_proj");
  EXPECT_EQ(find(report(Loader::kSglang), "mixed_formats")->severity, Severity::kError);
  make_quark_release();
  config_.erase("quantization_config");
  expect_error(Loader::kVllm, "built_otherwise");
}

TEST_F(LoaderCheck, FormsThatAreNotKnownAreSaid) {
  make_quark_release();
  quantization()["quant_method"] = "compressed-tensors";
  EXPECT_EQ(finding(Loader::kVllm, "loader_not_checked").severity, Severity::kNote);
  EXPECT_FALSE(report(Loader::kVllm).loads_right());
  quantization()["quant_method"] = "something";
  expect_error(Loader::kVllm, "loader_not_checked");
  make_quark_release();
  quantization()["layer_type_quant_config"] = base::json::object{{"Linear", nullptr}};
  EXPECT_TRUE(expect_error(Loader::kSglang, "loader_config").message.starts_with("not checked"));
  make_quark_release();
  config_.erase("architectures");
  expect_error(Loader::kSglang, "loader_architecture");
  make_quark_release();
  exclude().emplace_back("re:(?<=a)b");
  expect_error(Loader::kSglang, "exclude_expression");
  EXPECT_FALSE(report(Loader::kSglang).is_complete);
}

TEST_F(LoaderCheck, FindingsOfOneCauseAreOneThatCounts) {
  make_quark_release();
  remove_from_exclude(".self_attn.o_proj");
  const LoaderReport result = report(Loader::kVllm);
  EXPECT_EQ(std::ranges::count(result.findings, "built_otherwise", &Finding::code), 1);
  EXPECT_TRUE(find(result, "built_otherwise")->message.starts_with("3 tensors of 3 modules"))
      << find(result, "built_otherwise")->message;
  EXPECT_EQ(result.exclude_to_add.size(), 4U);  // and the one of the MTP layer
}

// Entries dead for one program are alive for another; none is dead in a list of exact names.
TEST_F(LoaderCheck, DeadEntriesAreCountedOnce) {
  make_quark_release();
  exclude().emplace_back("model.layers.1.self_attn");
  exclude().emplace_back("re:nothing.*");
  const Finding found = finding(Loader::kVllm, "exclude_dead");
  EXPECT_TRUE(found.message.contains("these 2")) << found.message;
  EXPECT_TRUE(report(Loader::kVllm).loads_right());
}

// 100,000 entries; what they would cost is bounded by counted steps, so they end everywhere.
TEST_F(LoaderCheck, HostileListOfNames) {
  make_quark_release();
  for (int i = 0; i < 100'000; ++i) {
    exclude().emplace_back(fmt::format("model.layers.1.mlp.experts.{}.x", i));
  }
  expect_error(Loader::kSglang, "built_otherwise");
}

TEST_F(LoaderCheck, HostileListOfExpressions) {
  make_quark_release();
  exclude().emplace_back("re:((");
  for (int i = 0; i < 100'000; ++i) exclude().emplace_back(fmt::format("re:(.*.*)*{}$", i));
  const LoaderReport result = report(Loader::kVllm);
  EXPECT_NE(find(result, "exclude_expression"), nullptr);
  EXPECT_NE(find(result, "loader_too_costly"), nullptr);
  EXPECT_FALSE(result.is_complete);
}

TEST_F(LoaderCheck, HostileListOfLayers) {
  make_quark_release();
  base::json::object layers;
  for (int i = 0; i < 100'000; ++i) layers[fmt::format("*{}", i)] = base::json::object{};
  quantization()["layer_quant_config"] = std::move(layers);
  expect_error(Loader::kSglang, "loader_too_costly");
}

}  // namespace
}  // namespace ingot::quantize
