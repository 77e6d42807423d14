#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/mapped_file.h"
#include "model/model_config.h"

namespace ingot::model {

// Configs for tests, as JSON that a test may change before it is parsed.

inline base::json::value json_of(std::string_view text) {
  auto value = base::parse_json(text, "test");
  CHECK(value.has_value(), value ? "" : value.error().message);
  return *std::move(value);
}

// "configs/glm-5.1.json" of tests/golden.
inline base::json::object golden_config(std::string_view file) {
  const auto path = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden" / file;
  const auto text = base::read_text_file(path, 1 << 20);
  CHECK(text.has_value(), path.string());
  return json_of(*text).get_object();
}

// Three layers that have one of everything: dense and MoE, full and shared indexers, MTP, four
// experts. Dimensions are no multiples of 32 or 128.
inline base::json::object small_config() {
  return json_of(R"({"model_type": "glm_moe_dsa", "vocab_size": 160, "hidden_size": 72,
      "intermediate_size": 144, "moe_intermediate_size": 40, "num_hidden_layers": 3,
      "num_nextn_predict_layers": 1, "first_k_dense_replace": 1, "num_attention_heads": 3,
      "q_lora_rank": 36, "kv_lora_rank": 20, "qk_nope_head_dim": 12, "qk_rope_head_dim": 8,
      "v_head_dim": 16, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2,
      "routed_scaling_factor": 2.5, "index_n_heads": 16, "index_head_dim": 10, "index_topk": 6,
      "indexer_types": ["full", "full", "shared"], "rms_norm_eps": 1e-5,
      "rope_parameters": {"rope_theta": 10000.0, "rope_type": "default"},
      "max_position_embeddings": 64, "eos_token_id": [157, 158]})")
      .get_object();
}

inline ModelConfig parsed(const base::json::object& config) {
  auto result = parse_model_config(config, "config.json");
  CHECK(result.has_value(), result ? "" : result.error().message);
  return *std::move(result);
}

}  // namespace ingot::model
