#include "quantize/quark_config.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;

constexpr std::string_view kConfigKey = "quantization_config";

enum class Dynamic : bool { kNo, kYes };

// One tensor's quantization. The members that are the same in all of ours are filled in here.
struct TensorScheme {
  std::string_view dtype;
  std::string_view qscheme;
  int ch_axis;
  json::value group_size;
  json::value symmetric;
  json::value scale_format;
  json::value scale_calculation_mode;
  std::string_view observer_cls;

  json::object with(Dynamic dynamic) const {
    return {{"dtype", dtype},
            {"is_dynamic", dynamic == Dynamic::kYes},
            {"qscheme", qscheme},
            {"ch_axis", ch_axis},
            {"group_size", group_size},
            {"block_size", nullptr},
            {"symmetric", symmetric},
            {"round_method", "half_even"},
            {"scale_type", "float"},
            {"zero_point_type", "int32"},
            {"scale_format", scale_format},
            {"scale_calculation_mode", scale_calculation_mode},
            {"mx_element_dtype", nullptr},
            {"observer_cls", observer_cls},
            {"is_scale_quant", false},
            {"enable_buffer_reuse", false},
            {"max_input_numel", 4194304}};
  }
};

json::object layer_scheme(json::object input_tensors, json::object weight) {
  return {{"input_tensors", std::move(input_tensors)},
          {"output_tensors", nullptr},
          {"weight", std::move(weight)},
          {"bias", nullptr},
          {"target_device", nullptr}};
}

// Quark's scheme "mxfp4".
json::object mxfp4_scheme() {
  const TensorScheme scheme = {.dtype = "fp4",
                               .qscheme = "per_group",
                               .ch_axis = -1,
                               .group_size = 32,
                               .symmetric = nullptr,
                               .scale_format = "e8m0",
                               .scale_calculation_mode = "even",
                               .observer_cls = "PerBlockMXObserver"};
  return layer_scheme(scheme.with(Dynamic::kYes), scheme.with(Dynamic::kNo));
}

// Quark's scheme "ptpc_fp8": a scale an output row of the weight, and one a token of the input.
json::object fp8_channel_scheme() {
  TensorScheme scheme = {.dtype = "fp8_e4m3",
                         .qscheme = "per_channel",
                         .ch_axis = 0,
                         .group_size = nullptr,
                         .symmetric = true,
                         .scale_format = nullptr,
                         .scale_calculation_mode = nullptr,
                         .observer_cls = "PerChannelMinMaxObserver"};
  json::object weight = scheme.with(Dynamic::kNo);
  scheme.ch_axis = 1;
  return layer_scheme(scheme.with(Dynamic::kYes), std::move(weight));
}

// The modules in FP8 per channel, sorted.
json::object layer_schemes(const QuantizationPlan& plan) {
  std::vector<std::string_view> modules;
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      if (tensor.treatment == Treatment::kFp8Channel) modules.push_back(tensor.parameter.module());
    }
  }
  std::ranges::sort(modules);
  json::object schemes;
  for (const std::string_view module : modules) schemes[module] = fp8_channel_scheme();
  return schemes;
}

// As Quark does: in objects inside objects, not inside arrays.
void remove_quantization_config(json::object& object) {
  const auto found = object.find(kConfigKey);
  if (found != object.end()) object.stable_erase(found);
  for (auto& member : object) {
    if (member.value().is_object()) remove_quantization_config(member.value().get_object());
  }
}

}  // namespace

json::value quark_config(const json::value& source_config, const QuantizationPlan& plan) {
  CHECK(source_config.is_object(), "config.json");
  json::object config = source_config.get_object();
  remove_quantization_config(config);
  json::array exclude;
  for (const std::string& module : plan.exclude) exclude.emplace_back(module);
  config[kConfigKey] = json::object{{"global_quant_config", mxfp4_scheme()},
                                    {"exclude", std::move(exclude)},
                                    {"algo_config", nullptr},
                                    {"softmax_quant_spec", nullptr},
                                    {"quant_method", "quark"},
                                    {"layer_type_quant_config", json::object{}},
                                    {"layer_quant_config", layer_schemes(plan)},
                                    {"kv_cache_quant_config", json::object{}},
                                    {"kv_cache_post_rope", false},
                                    {"quant_mode", "eager_mode"},
                                    {"version", "0.13"},
                                    {"export", json::object{{"kv_cache_group", json::array{}},
                                                            {"min_kv_scale", 0.0},
                                                            {"pack_method", "reorder"},
                                                            {"weight_format", "real_quantized"},
                                                            {"weight_merge_groups", nullptr}}}};
  return config;
}

json::value quark_index(const QuantizationPlan& plan, uint64_t total_size_bytes) {
  json::object map;
  for (const PlannedShard& shard : plan.shards) {
    std::vector<const PlannedTensor*> tensors;
    for (const PlannedTensor& tensor : shard.tensors) tensors.push_back(&tensor);
    std::ranges::sort(tensors, {},
                      [](const PlannedTensor* tensor) { return tensor->source.data->offset; });
    for (const PlannedTensor* tensor : tensors) {
      for (const tensor::TensorSpec& output : tensor->outputs) map[output.name] = shard.file_name;
    }
  }
  return json::object{{"metadata", json::object{{"total_size", total_size_bytes}}},
                      {"weight_map", std::move(map)}};
}

}  // namespace ingot::quantize
