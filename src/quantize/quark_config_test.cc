#include "quantize/quark_config.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "quantize/plan_fixture.h"
#include "quantize/quark_json.h"

namespace ingot::quantize {
namespace {

// A config.json that Quark 0.13 wrote.
std::string quark_file(std::string_view name) {
  const auto path = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/quantize" / name;
  return base::read_text_file(path, 1 << 20).value();
}

base::json::object without_quantization(const std::string& text) {
  base::json::object config = model::json_of(text).get_object();
  config.stable_erase(config.find("quantization_config"));
  return config;
}

// A whole file-to-file run of Quark on a small glm_moe_dsa model, with the exclusions that AMD's
// GLM-5.2 has.
TEST(QuarkConfig, IsThatOfQuarkByteForByte) {
  const std::string expected = quark_file("quark_f2f_config.json");
  const base::json::object source = without_quantization(expected);
  PlannedModel model(source);
  const QuantizationPlan plan = model.plan("amd-glm-5.2");
  EXPECT_EQ(plan.exclude.size(), 81U);
  EXPECT_EQ(quark_json(quark_config(source, plan)), expected);
}

// Quark on a checkpoint of seven tensors, whose config says next to nothing.
TEST(QuarkConfig, IsThatOfQuarkForAFewTensors) {
  const std::string expected = quark_file("quark_cases_config.json");
  QuantizationPlan plan;
  plan.exclude = {"model.layers.3.mlp.gate", "model.layers.3.self_attn.o_proj"};
  EXPECT_EQ(quark_json(quark_config(without_quantization(expected), plan)), expected);
}

TEST(QuarkConfig, ReplacesTheSourcesQuantization) {
  const base::json::value source = model::json_of(
      R"({"a": 1, "quantization_config": {"quant_method": "fp8"}, "b": {"c": 2,
          "quantization_config": {}, "d": {"quantization_config": 1}}, "e": [{
          "quantization_config": 3}]})");
  const base::json::value config = quark_config(source, {});
  const base::json::object& object = config.get_object();
  EXPECT_EQ(object.at("b"), model::json_of(R"({"c": 2, "d": {}})"));
  EXPECT_EQ(object.at("e"), source.at("e"));
  EXPECT_EQ(object.at("quantization_config").at("quant_method").get_string(), "quark");
  std::string keys;
  for (const auto& member : object) keys += std::string(member.key()) + " ";
  EXPECT_EQ(keys, "a b e quantization_config ");
}

TEST(QuarkConfig, DescribesFp8LayersByExactNames) {
  const base::json::object source = without_quantization(quark_file("quark_f2f_config.json"));
  PlannedModel model(source);
  const QuantizationPlan plan = model.plan("amd-glm-5.2-attn-fp8");
  const base::json::value config = quark_config(source, plan).at("quantization_config");
  const base::json::object& layers = config.at("layer_quant_config").get_object();
  // Attention of 5 layers at 5 modules, indexers of 3 at 1, dense MLPs of 2 at 3, and the head.
  EXPECT_EQ(layers.size(), 5U * 5 + 3 * 1 + 2 * 3 + 1);
  EXPECT_EQ(layers.begin()->key(), "lm_head");
  const base::json::value expected = model::json_of(R"({
      "input_tensors": {"dtype": "fp8_e4m3", "is_dynamic": true, "qscheme": "per_channel",
        "ch_axis": 1, "group_size": null, "block_size": null, "symmetric": true,
        "round_method": "half_even", "scale_type": "float", "zero_point_type": "int32",
        "scale_format": null, "scale_calculation_mode": null, "mx_element_dtype": null,
        "observer_cls": "PerChannelMinMaxObserver", "is_scale_quant": false,
        "enable_buffer_reuse": false, "max_input_numel": 4194304},
      "output_tensors": null,
      "weight": {"dtype": "fp8_e4m3", "is_dynamic": false, "qscheme": "per_channel",
        "ch_axis": 0, "group_size": null, "block_size": null, "symmetric": true,
        "round_method": "half_even", "scale_type": "float", "zero_point_type": "int32",
        "scale_format": null, "scale_calculation_mode": null, "mx_element_dtype": null,
        "observer_cls": "PerChannelMinMaxObserver", "is_scale_quant": false,
        "enable_buffer_reuse": false, "max_input_numel": 4194304},
      "bias": null, "target_device": null})");
  const std::string module = "model.layers.4.self_attn.kv_b_proj";
  ASSERT_TRUE(layers.contains(module));
  EXPECT_EQ(quark_json(layers.at(module)), quark_json(expected));
  for (const auto& entry : config.at("exclude").get_array()) {
    EXPECT_FALSE(layers.contains(entry.get_string())) << entry.get_string();
  }
}

TEST(QuarkIndex, ListsTensorsShardByShard) {
  PlannedModel model(model::small_config());
  // Offsets say the source's order; names and dtypes that of the shard.
  const QuantizationPlan plan = model.plan("experts-only", 3);
  const base::json::value index = quark_index(plan, 12345);
  EXPECT_TRUE(quark_json(index).starts_with(
      "{\n    \"metadata\": {\n        \"total_size\": 12345\n    },\n    \"weight_map\": {\n"
      "        \"model.embed_tokens.weight\": \"model-00001-of-00003.safetensors\",\n"
      "        \"model.norm.weight\": \"model-00001-of-00003.safetensors\",\n"))
      << quark_json(index).substr(0, 400);
  const base::json::object& map = index.at("weight_map").get_object();
  size_t num_outputs = 0;
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      for (const tensor::TensorSpec& output : tensor.outputs) {
        ++num_outputs;
        ASSERT_TRUE(map.contains(output.name)) << output.name;
        EXPECT_EQ(map.at(output.name).get_string(), shard.file_name);
      }
    }
  }
  EXPECT_EQ(map.size(), num_outputs);
  std::string before;
  for (const auto& member : map) {
    const std::string_view name = member.key();
    if (name.ends_with(".weight_scale")) {
      EXPECT_EQ(before + "_scale", name);
    }
    before = name;
  }
}

}  // namespace
}  // namespace ingot::quantize
