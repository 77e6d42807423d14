// Failures to load Quark's checkpoints that users of sglang and vLLM have reported, each on a small
// checkpoint: found before loading, with the fix, and the right checkpoint passes.

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "quantize/loader_fixture.h"

namespace ingot::quantize {
namespace {

class LoaderFaults : public LoaderCheckTest {
 protected:
  LoaderFaults() { make_quark_release(); }
};

TEST_F(LoaderFaults, TheReleaseItselfPasses) { expect_right(); }

// Wafer's crash: the MTP layer is listed as the file names it, and sglang looks it up elsewhere.
TEST_F(LoaderFaults, MtpLayerUnderAnotherNameBefore30265) {
  const Finding found = expect_error(Loader::kSglangBefore30265, "built_otherwise_mtp");
  EXPECT_TRUE(found.message.contains("as MXFP4")) << found.message;
  EXPECT_TRUE(found.message.contains("widths differ")) << found.message;
  const auto missing = report(Loader::kSglangBefore30265).exclude_to_add;
  for (const char* name :
       {"model.eh_proj", "model.decoder.mlp.experts", "model.decoder.self_attn.o_proj",
        "model.decoder.mlp.shared_experts.gate_proj", "model.decoder.self_attn.indexer.wk"}) {
    EXPECT_NE(std::ranges::find(missing, name), missing.end()) << name;
  }
  expect_mended_by_exclude(Loader::kSglangBefore30265);
  expect_right();
}

// A bf16 draft layer that the list does not name at all (vLLM 49275, ROCm/vllm 1022).
TEST_F(LoaderFaults, MtpLayerMissingFromTheList) {
  remove_from_exclude("model.layers.3.");
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    const Finding found = expect_error(loader, "built_otherwise_mtp");
    EXPECT_TRUE(found.remedy.contains("exclude")) << found.remedy;
    expect_mended_by_exclude(loader);
    remove_from_exclude("model.layers.3.");
  }
}

// Modules fused by 3-D tensors pass Quark's conversion silently; here they are not checked, aloud.
TEST_F(LoaderFaults, ExpertsFusedInOneTensor) {
  model::remove_tensors(tensors_, "model.layers.1.mlp.experts.");
  tensors_.push_back({.name = "model.layers.1.mlp.experts.gate_up_proj",
                      .dtype = tensor::DType::kBF16,
                      .shape = {4, 128, 64}});
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    expect_error(loader, "loader_not_checked");
    EXPECT_FALSE(report(loader).is_complete);
  }
}

// GSM8K fell from 95 to 27 % without an error (Quark 25).
TEST_F(LoaderFaults, NamesOfAnotherModelAroundThem) {
  std::vector<std::string> entries;
  for (const auto& entry : exclude()) {
    entries.push_back("language_model." + std::string(entry.get_string()));
  }
  set_exclude(entries);
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    expect_error(loader, "built_otherwise");
    EXPECT_EQ(finding(loader, "exclude_dead").severity, Severity::kWarning);
    set_exclude(entries);
    expect_mended_by_exclude(loader);
    set_exclude(entries);
  }
}

// A list of single experts against one module of them all (sglang 37673, 39317).
TEST_F(LoaderFaults, SingleExpertsAgainstOneModule) {
  set_exclude({});
  make_quark_release();
  // Layer 1 stays bf16 as a whole, and every expert is listed.
  tensors_ = model::published_tensors(model::parsed(config_));
  for (const Parameter& parameter : parameters()) {
    const std::string module(parameter.module());
    const bool is_expert = parameter.module_class == model::ModuleClass::kRoutedExperts ||
                           parameter.module_class == model::ModuleClass::kSharedExperts;
    if (is_expert && parameter.layer == 2) pack(module);
    if (is_expert && parameter.layer == 1) exclude().emplace_back(module);
  }
  const auto passes_but_for_shared_experts = [&](Loader loader) {
    EXPECT_TRUE(report(loader).loads_right());
    EXPECT_EQ(find(report(loader), "built_otherwise"), nullptr);
  };
  passes_but_for_shared_experts(Loader::kSglang);
  passes_but_for_shared_experts(Loader::kVllm);
  expect_error(Loader::kSglangBefore30265, "built_otherwise");
}

// One entry for one expert leaves the whole layer unquantized, whatever the others are.
TEST_F(LoaderFaults, OneExpertListedOfManyThatAreQuantized) {
  exclude().emplace_back("model.layers.1.mlp.experts.0.up_proj");
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    const Finding found = expect_error(loader, "built_otherwise");
    EXPECT_TRUE(found.message.contains("experts.0.up_proj")) << found.message;
    EXPECT_TRUE(found.remedy.contains("take the exclude entry")) << found.remedy;
  }
}

// A fused name in the list is lost where names are expanded first.
TEST_F(LoaderFaults, FusedNameInTheList) {
  remove_from_exclude("model.layers.0.self_attn.q_a_proj");
  remove_from_exclude("model.layers.0.self_attn.kv_a_proj_with_mqa");
  exclude().emplace_back("model.layers.0.self_attn.fused_qkv_a_proj_with_mqa");
  expect_right(Loader::kSglang);
  expect_error(Loader::kSglangBefore30265, "built_otherwise");
  expect_error(Loader::kVllm, "built_otherwise");
  EXPECT_TRUE(finding(Loader::kVllm, "exclude_dead").subject.contains("fused_qkv_a_proj"));
}

// FP8 layers that are kept: Quark renames weight_scale_inv, and loaders do not agree on the name
// (Quark 42, vLLM 54556, sglang 38999).
TEST_F(LoaderFaults, RenamedBlockScale) {
  const auto block = model::json_of(R"({
      "weight": {"dtype": "fp8_e4m3", "qscheme": "per_block", "block_size": [128, 128],
                 "is_dynamic": false, "symmetric": true},
      "input_tensors": {"dtype": "fp8_e4m3", "qscheme": "per_group", "group_size": 128,
                        "is_dynamic": true, "symmetric": true},
      "output_tensors": null, "bias": null})");
  for (const char* scale : {"weight_scale", "weight_scale_inv"}) {
    make_quark_release();
    for (const char* name : {"mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"}) {
      const std::string module = fmt::format("model.layers.0.{}", name);
      remove_from_exclude(module);
      make_fp8_block(module, scale);
      quantization()["layer_quant_config"].as_object()[module] = block;
    }
    const bool is_inv = std::string_view(scale).ends_with("_inv");
    expect_right(is_inv ? Loader::kSglang : Loader::kVllm);
    const Finding found = expect_error(is_inv ? Loader::kVllm : Loader::kSglang, "scale_name");
    EXPECT_TRUE(found.remedy.contains(is_inv ? "to weight_scale" : "to weight_scale_inv"))
        << found.remedy;
    expect_error(Loader::kSglangBefore30265, "loader_refuses");
  }
}

// An export that writes weight_quantizer.scale (Quark 44).
TEST_F(LoaderFaults, ScaleUnderTheExportersOwnName) {
  const std::string module = "model.layers.1.mlp.experts.0.up_proj";
  model::tensor_named(tensors_, module + ".weight_scale").name = module + ".weight_quantizer.scale";
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    const Finding found = expect_error(loader, "exporter_scale_name");
    EXPECT_TRUE(found.remedy.contains(".weight_scale")) << found.remedy;
    EXPECT_FALSE(report(loader).is_complete);
  }
}

// Mixed schemes inside one fused projection are refused.
TEST_F(LoaderFaults, HalfOfAFusedModuleListed) {
  remove_from_exclude("model.layers.1.self_attn.kv_a_proj_with_mqa");
  for (const Loader loader : {Loader::kSglang, Loader::kSglangBefore30265, Loader::kVllm}) {
    const Finding found = expect_error(loader, "loader_refuses");
    EXPECT_TRUE(found.message.contains("a part of")) << found.message;
  }
}

TEST_F(LoaderFaults, HalfOfAFusedModuleQuantized) {
  pack("model.layers.1.self_attn.q_a_proj");
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    const Finding found = expect_error(loader, "mixed_formats");
    EXPECT_TRUE(found.subject.contains("model.layers.1.self_attn")) << found.subject;
  }
}

// Quark's recipes are wildcards, its lists are not.
TEST_F(LoaderFaults, WildcardsInTheList) {
  set_exclude({"*self_attn*", "*mlp.gate", "*lm_head", "*mlp.gate_proj", "*mlp.up_proj",
               "*mlp.down_proj", "*layers.3.*"});
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    EXPECT_TRUE(finding(loader, "exclude_glob").remedy.contains("re:"));
    expect_error(loader, "built_otherwise");
  }
}

// sglang matches expressions against the draft's names and renames exact entries only.
TEST_F(LoaderFaults, ExpressionForTheMtpLayer) {
  remove_from_exclude("model.layers.3.");
  exclude().emplace_back("re:model.layers.3.*");
  expect_right(Loader::kVllm);
  EXPECT_TRUE(report(Loader::kSglangBefore30265).loads_right());
  expect_error(Loader::kSglang, "built_otherwise_mtp");
  EXPECT_NE(find(report(Loader::kSglang), "exclude_dead"), nullptr);
  expect_mended_by_exclude(Loader::kSglang);
}

// Expressions are anchored at the start; "self_attn" alone names nothing.
TEST_F(LoaderFaults, ExpressionThatDoesNotBeginAtTheStart) {
  remove_from_exclude(".self_attn.");
  for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
    exclude().emplace_back("re:.*self_attn.*");
    expect_right(loader);
    remove_from_exclude("re:");
    exclude().emplace_back("re:self_attn");
    expect_error(loader, "built_otherwise");
    remove_from_exclude("re:");
  }
}

// W4A16 in Quark's form: no path in sglang, one in vLLM.
TEST_F(LoaderFaults, WeightOnlyConfig) {
  quantization()["global_quant_config"].as_object()["input_tensors"] = nullptr;
  const Finding found = expect_error(Loader::kSglang, "loader_refuses");
  EXPECT_TRUE(found.message.contains("input_tensors")) << found.message;
  expect_right(Loader::kVllm);
}

TEST_F(LoaderFaults, MissingKeys) {
  for (const char* key : {"export", "layer_type_quant_config", "global_quant_config"}) {
    make_quark_release();
    quantization().erase(key);
    for (const Loader loader : {Loader::kSglang, Loader::kVllm}) {
      EXPECT_TRUE(expect_error(loader, "loader_config").subject.ends_with(key));
    }
  }
  make_quark_release();
  quantization().erase("layer_quant_config");
  expect_error(Loader::kSglang, "loader_config");
  expect_right(Loader::kVllm);
}

// GLM-5 was released with bf16 shared experts beside MXFP4 routed ones.
TEST_F(LoaderFaults, SharedExpertsInAnotherFormat) {
  config_["n_routed_experts"] = 256;
  make_quark_release();
  expect_right();
  tensors_ = model::published_tensors(model::parsed(config_));
  for (const Parameter& parameter : parameters()) {
    const std::string module(parameter.module());
    if (parameter.module_class == model::ModuleClass::kRoutedExperts) pack(module);
    if (parameter.module_class == model::ModuleClass::kSharedExperts)
      exclude().emplace_back(module);
  }
  const Finding warning = finding(Loader::kSglang, "shared_experts_apart");
  EXPECT_EQ(warning.severity, Severity::kWarning);
  EXPECT_TRUE(warning.remedy.contains("--disable-shared-experts-fusion")) << warning.remedy;
  EXPECT_TRUE(report(Loader::kSglang).loads_right());
  EXPECT_EQ(finding(Loader::kVllm, "shared_experts_apart").severity, Severity::kNote);
  // Older versions fused them all the same.
  expect_error(Loader::kSglangBefore30265, "shared_experts_fused");
  // So does this one where the entry does not say "shared_expert".
  remove_from_exclude("shared_experts");
  exclude().emplace_back(R"(re:model\.(layers\.\d+|decoder)\.mlp\.shared.*)");
  expect_error(Loader::kSglang, "shared_experts_fused");
}

// Entries for the draft's shared experts kept the main model from fusing its own (sglang 36124).
TEST_F(LoaderFaults, DraftEntryKeepsSharedExpertsApart) {
  config_["n_routed_experts"] = 256;
  make_quark_release();
  expect_right(Loader::kSglang);
  exclude().emplace_back("model.decoder.mlp.shared_experts.down_proj");
  const Finding found = finding(Loader::kSglang, "shared_experts_apart");
  EXPECT_EQ(found.severity, Severity::kWarning);
  EXPECT_TRUE(found.message.contains("model.decoder.mlp.shared_experts")) << found.message;
}

}  // namespace
}  // namespace ingot::quantize
