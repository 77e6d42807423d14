#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"
#include "model/load_plan.h"
#include "quantize/loader_check.h"

namespace ingot::quantize {

// Small checkpoints as they are published, for tests to break.

// One of everything, in sizes that MXFP4 divides: dense and MoE layers, an indexer of its own and a
// shared one, the MTP layer at index 3.
inline base::json::object loader_test_config() {
  return model::json_of(R"({"model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"],
      "vocab_size": 96, "hidden_size": 64, "intermediate_size": 96, "moe_intermediate_size": 64,
      "num_hidden_layers": 3, "num_nextn_predict_layers": 1, "first_k_dense_replace": 1,
      "num_attention_heads": 4, "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 24,
      "qk_rope_head_dim": 8, "v_head_dim": 32, "n_routed_experts": 4, "n_shared_experts": 1,
      "num_experts_per_tok": 2, "routed_scaling_factor": 2.5, "index_n_heads": 16,
      "index_head_dim": 32, "index_topk": 6, "indexer_types": ["full", "full", "shared"],
      "rms_norm_eps": 1e-5, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
      "max_position_embeddings": 64, "eos_token_id": [90]})")
      .get_object();
}

// quantization_config as Quark writes it, but for the list of excluded modules.
inline base::json::object quark_test_config() {
  return model::json_of(R"({"quant_method": "quark", "quant_mode": "eager_mode", "version": "0.13",
      "global_quant_config": {
        "weight": {"dtype": "fp4", "is_dynamic": false, "qscheme": "per_group", "group_size": 32,
                   "block_size": null, "scale_format": "e8m0"},
        "input_tensors": {"dtype": "fp4", "is_dynamic": true, "qscheme": "per_group",
                          "group_size": 32, "block_size": null, "scale_format": "e8m0"},
        "output_tensors": null, "bias": null, "target_device": null},
      "layer_quant_config": {}, "layer_type_quant_config": {}, "kv_cache_quant_config": {},
      "exclude": [], "algo_config": null,
      "export": {"kv_cache_group": [], "pack_method": "reorder"}})")
      .get_object();
}

class LoaderCheckTest : public testing::Test {
 protected:
  using Finding = model::Finding;
  using Parameter = model::Parameter;
  using Severity = model::Severity;

  LoaderCheckTest() : config_(loader_test_config()) {}

  std::vector<Parameter> parameters() const {
    return model::list_parameters(model::parsed(config_));
  }

  void pack(const std::string& module) {
    auto& weight = model::tensor_named(tensors_, module + ".weight");
    const int64_t out = weight.shape[0];
    const int64_t in = weight.shape[1];
    weight.dtype = tensor::DType::kU8;
    weight.shape = {out, in / 2};
    tensors_.push_back({.name = module + ".weight_scale",
                        .dtype = tensor::DType::kU8,
                        .shape = {out, (in + 31) / 32}});
  }

  // FP8 with scales of this name and shape.
  void make_fp8(const std::string& module, const std::string& scale, const tensor::Shape& shape) {
    model::tensor_named(tensors_, module + ".weight").dtype = tensor::DType::kF8E4M3;
    tensors_.push_back(
        {.name = module + "." + scale, .dtype = tensor::DType::kF32, .shape = shape});
  }

  void make_fp8_block(const std::string& module, const std::string& scale) {
    const auto& shape = model::tensor_named(tensors_, module + ".weight").shape;
    make_fp8(module, scale, {(shape[0] + 127) / 128, (shape[1] + 127) / 128});
  }

  // An AMD release: routed and shared experts of the main layers MXFP4, everything else and the MTP
  // layer bf16 and listed by its exact names.
  void make_quark_release() {
    tensors_ = model::published_tensors(model::parsed(config_));
    base::json::array exclude;
    for (const Parameter& parameter : parameters()) {
      const std::string module(parameter.module());
      if (parameter.module_class == model::ModuleClass::kRoutedExperts ||
          parameter.module_class == model::ModuleClass::kSharedExperts) {
        pack(module);
      } else if (parameter.is_linear() && !parameter.optional) {
        exclude.emplace_back(module);
      }
    }
    config_["quantization_config"] = quark_test_config();
    quantization()["exclude"] = std::move(exclude);
  }

  // An FP8 release: everything in blocks but what is never quantized and what `keeps` names.
  void make_fp8_release(const std::vector<std::string>& keeps) {
    tensors_ = model::published_tensors(model::parsed(config_));
    for (const Parameter& parameter : parameters()) {
      using model::Role;
      const std::string module(parameter.module());
      const bool is_never =
          parameter.role == Role::kRouter || parameter.role == Role::kIndexGates ||
          parameter.role == Role::kLmHead || parameter.role == Role::kMtpProjection;
      const bool is_kept = std::ranges::find(keeps, module) != keeps.end();
      if (!parameter.is_linear() || parameter.optional || is_never || is_kept) continue;
      make_fp8_block(module, "weight_scale_inv");
    }
  }

  base::json::object& quantization() { return config_["quantization_config"].as_object(); }

  base::json::array& exclude() { return quantization()["exclude"].as_array(); }

  void set_exclude(std::vector<std::string> entries) {
    quantization()["exclude"] = base::json::array(entries.begin(), entries.end());
  }

  // Takes entries out that contain `part`; there has to be one.
  void remove_from_exclude(std::string_view part) {
    base::json::array kept;
    for (const auto& entry : exclude()) {
      if (!std::string_view(entry.get_string()).contains(part)) kept.push_back(entry);
    }
    CHECK(kept.size() < exclude().size(), part);
    exclude() = std::move(kept);
  }

  LoaderReport report(Loader loader) {
    checkpoint_.reset();
    model::write_sparse_checkpoint(scratch_.path(), tensors_);
    checkpoint_.emplace(tensor::Checkpoint::open(scratch_.path()).value());
    const model::ModelConfig config = model::parsed(config_);
    const model::LoadPlan plan = model::plan_load(config, *checkpoint_, {}).value();
    return check_for_loader(loader, config_, config, plan, *checkpoint_);
  }

  void expect_right(Loader loader) {
    const LoaderReport result = report(loader);
    EXPECT_TRUE(result.loads_right());
    for (const Finding& finding : result.findings) {
      ADD_FAILURE() << name(loader) << ": " << finding.line();
    }
    EXPECT_GT(result.num_tensors, 0);
  }

  void expect_right() {
    expect_right(Loader::kSglang);
    expect_right(Loader::kVllm);
  }

  static const Finding* find(const LoaderReport& report, std::string_view code) {
    const auto found = std::ranges::find(report.findings, code, &Finding::code);
    return found == report.findings.end() ? nullptr : &*found;
  }

  // The finding of this code in a report that must have one.
  Finding finding(Loader loader, std::string_view code) {
    const LoaderReport result = report(loader);
    if (const Finding* found = find(result, code)) return *found;
    ADD_FAILURE() << name(loader) << " has no finding " << code;
    for (const Finding& other : result.findings)
      ADD_FAILURE() << other.code << ": " << other.line();
    return {};
  }

  Finding expect_error(Loader loader, std::string_view code) {
    Finding result = finding(loader, code);
    EXPECT_EQ(result.severity, Severity::kError) << result.line();
    EXPECT_FALSE(report(loader).loads_right());
    return result;
  }

  // Adding the entries that a report asks for is all that is missing.
  void expect_mended_by_exclude(Loader loader) {
    const LoaderReport before = report(loader);
    EXPECT_FALSE(before.loads_right());
    EXPECT_FALSE(before.exclude_to_add.empty());
    for (const std::string& entry : before.exclude_to_add) exclude().emplace_back(entry);
    const LoaderReport after = report(loader);
    ASSERT_TRUE(after.loads_right());
    EXPECT_EQ(after.where(), "") << "everywhere";
    EXPECT_TRUE(after.exclude_to_add.empty());
    for (const Finding& found : after.findings) {
      EXPECT_NE(found.severity, Severity::kError) << found.line();
    }
  }

  base::json::object config_;
  std::vector<tensor::TensorSpec> tensors_;
  base::ScratchDirectory scratch_;
  std::optional<tensor::Checkpoint> checkpoint_;
};

}  // namespace ingot::quantize
