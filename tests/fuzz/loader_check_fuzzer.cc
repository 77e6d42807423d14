// quantization_config as a stranger wrote it, beside a small model whose experts are MXFP4: every
// loader's rules come to an end, say everything in single lines, and with the exclude entries that
// they ask for added they ask for none any more.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/load_plan.h"
#include "quantize/loader_check.h"

namespace {

namespace json = ingot::base::json;
namespace model = ingot::model;
using ingot::quantize::Loader;
using ingot::quantize::LoaderReport;

constexpr std::string_view kConfig = R"({"model_type": "glm_moe_dsa",
    "architectures": ["GlmMoeDsaForCausalLM"], "vocab_size": 96, "hidden_size": 64,
    "intermediate_size": 96, "moe_intermediate_size": 64, "num_hidden_layers": 2,
    "num_nextn_predict_layers": 1, "first_k_dense_replace": 1, "num_attention_heads": 4,
    "q_lora_rank": 32, "kv_lora_rank": 32, "qk_nope_head_dim": 24, "qk_rope_head_dim": 8,
    "v_head_dim": 32, "n_routed_experts": 2, "n_shared_experts": 1, "num_experts_per_tok": 2,
    "routed_scaling_factor": 2.5, "index_n_heads": 16, "index_head_dim": 32, "index_topk": 6,
    "indexer_types": ["full", "shared"], "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
    "max_position_embeddings": 64, "eos_token_id": [90]})";

// The model on disk, read once: only its description changes.
struct Model {
  Model() : document(ingot::base::parse_json(kConfig, "config.json").value().get_object()) {
    const auto config = model::parse_model_config(document, "config.json").value();
    auto tensors = model::published_tensors(config);
    std::vector<ingot::tensor::TensorSpec> scales;
    for (auto& tensor : tensors) {
      if (!tensor.name.contains("layers.1.mlp.experts")) continue;
      const int64_t rows = tensor.shape[0];
      const int64_t cols = tensor.shape[1];
      tensor.dtype = ingot::tensor::DType::kU8;
      tensor.shape = {rows, cols / 2};
      scales.push_back({.name = tensor.name + "_scale",
                        .dtype = ingot::tensor::DType::kU8,
                        .shape = {rows, cols / 32}});
    }
    tensors.insert(tensors.end(), scales.begin(), scales.end());
    model::write_sparse_checkpoint(scratch.path(), tensors);
    checkpoint.emplace(ingot::tensor::Checkpoint::open(scratch.path()).value());
  }

  ingot::base::ScratchDirectory scratch;
  json::object document;
  std::optional<ingot::tensor::Checkpoint> checkpoint;
};

void check_line(std::string_view line) {
  CHECK(std::ranges::none_of(line, [](char c) { return static_cast<uint8_t>(c) < 0x20; }), line);
}

// Of the model under this description, or nothing where the description is refused before.
std::optional<LoaderReport> report(const Model& subject, Loader loader, json::object document) {
  const auto config = model::parse_model_config(document, "config.json");
  if (!config) {
    check_line(config.error().message);
    return std::nullopt;
  }
  const auto plan = model::plan_load(*config, *subject.checkpoint, {});
  CHECK(plan.has_value());
  return check_for_loader(loader, document, *config, *plan, *subject.checkpoint);
}

void check_report(const LoaderReport& report) {
  for (const auto& finding : report.findings) {
    check_line(finding.line());
    CHECK(!finding.code.empty() && !finding.message.empty() && !finding.remedy.empty());
  }
  CHECK(report.loads_right() || !report.findings.empty());
  for (const std::string& entry : report.exclude_to_add) CHECK(!entry.empty());
}

void check_mended(const Model& subject, const LoaderReport& before, json::object document) {
  json::object& quantization = document["quantization_config"].as_object();
  json::value* exclude = quantization.if_contains("exclude");
  if (exclude == nullptr || !exclude->is_array()) return;
  for (const std::string& entry : before.exclude_to_add) exclude->as_array().emplace_back(entry);
  const auto after = report(subject, before.loader, document);
  CHECK(after.has_value() && after->exclude_to_add.empty(), before.exclude_to_add.front());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Model subject;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto quantization = ingot::base::parse_json(text, "config.json");
  if (!quantization || !quantization->is_object()) return 0;
  json::object document = subject.document;
  document["quantization_config"] = *quantization;
  for (const Loader loader : {Loader::kSglang, Loader::kSglangBefore30265, Loader::kVllm}) {
    const auto result = report(subject, loader, document);
    if (!result) return 0;
    check_report(*result);
    if (result->is_complete && !result->exclude_to_add.empty()) {
      check_mended(subject, *result, document);
    }
  }
  return 0;
}
