#include "model/named_configs.h"

#include <array>
#include <string_view>
#include <utility>

namespace ingot::model {
namespace {

// Every part of the architecture at the smallest size that shows it: sharing of index selections,
// contexts beyond index_topk, dense and MoE layers, an MTP layer.
constexpr const char* kTiny = R"({
  "model_type": "glm_moe_dsa",
  "architectures": ["GlmMoeDsaForCausalLM"],
  "vocab_size": 512,
  "hidden_size": 128,
  "intermediate_size": 256,
  "moe_intermediate_size": 64,
  "num_hidden_layers": 7,
  "num_nextn_predict_layers": 1,
  "first_k_dense_replace": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 4,
  "q_lora_rank": 64,
  "kv_lora_rank": 64,
  "qk_nope_head_dim": 32,
  "qk_rope_head_dim": 32,
  "v_head_dim": 64,
  "n_routed_experts": 16,
  "n_shared_experts": 1,
  "num_experts_per_tok": 4,
  "n_group": 1,
  "topk_group": 1,
  "norm_topk_prob": true,
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "topk_method": "noaux_tc",
  "index_n_heads": 16,
  "index_head_dim": 64,
  "index_topk": 32,
  "index_topk_freq": 4,
  "index_skip_topk_offset": 3,
  "index_share_for_mtp_iteration": true,
  "indexer_rope_interleave": true,
  "rope_interleave": true,
  "rope_parameters": {"rope_theta": 1000000.0, "rope_type": "default"},
  "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false,
  "max_position_embeddings": 4096,
  "hidden_act": "silu",
  "eos_token_id": [509, 510, 511]
})";

// The published numbers of GLM-5.2.
constexpr const char* kGlm52 = R"({
  "model_type": "glm_moe_dsa",
  "architectures": ["GlmMoeDsaForCausalLM"],
  "vocab_size": 154880,
  "hidden_size": 6144,
  "intermediate_size": 12288,
  "moe_intermediate_size": 2048,
  "num_hidden_layers": 78,
  "num_nextn_predict_layers": 1,
  "first_k_dense_replace": 3,
  "num_attention_heads": 64,
  "num_key_value_heads": 64,
  "q_lora_rank": 2048,
  "kv_lora_rank": 512,
  "qk_nope_head_dim": 192,
  "qk_rope_head_dim": 64,
  "v_head_dim": 256,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "num_experts_per_tok": 8,
  "n_group": 1,
  "topk_group": 1,
  "norm_topk_prob": true,
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "topk_method": "noaux_tc",
  "index_n_heads": 32,
  "index_head_dim": 128,
  "index_topk": 2048,
  "index_topk_freq": 4,
  "index_skip_topk_offset": 3,
  "index_share_for_mtp_iteration": true,
  "indexer_rope_interleave": true,
  "rope_interleave": true,
  "rope_parameters": {"rope_theta": 8000000.0, "rope_type": "default"},
  "rms_norm_eps": 1e-05,
  "tie_word_embeddings": false,
  "max_position_embeddings": 1048576,
  "hidden_act": "silu",
  "eos_token_id": [154820, 154827, 154829]
})";

// The published numbers of GLM-4.7-Flash.
constexpr const char* kGlm47Flash = R"({
  "architectures": ["Glm4MoeLiteForCausalLM"],
  "eos_token_id": [154820, 154827, 154829],
  "hidden_act": "silu",
  "hidden_size": 2048,
  "intermediate_size": 10240,
  "max_position_embeddings": 202752,
  "model_type": "glm4_moe_lite",
  "moe_intermediate_size": 1536,
  "topk_method": "noaux_tc",
  "norm_topk_prob": true,
  "num_attention_heads": 20,
  "n_group": 1,
  "topk_group": 1,
  "n_routed_experts": 64,
  "n_shared_experts": 1,
  "routed_scaling_factor": 1.8,
  "num_experts_per_tok": 4,
  "first_k_dense_replace": 1,
  "num_hidden_layers": 47,
  "num_key_value_heads": 20,
  "num_nextn_predict_layers": 1,
  "partial_rotary_factor": 1.0,
  "rms_norm_eps": 1e-05,
  "rope_scaling": null,
  "rope_theta": 1000000,
  "tie_word_embeddings": false,
  "q_lora_rank": 768,
  "kv_lora_rank": 512,
  "qk_nope_head_dim": 192,
  "qk_rope_head_dim": 64,
  "v_head_dim": 256,
  "vocab_size": 154880
})";

// The published numbers of DeepSeek-V3.2.
constexpr const char* kDeepseekV32 = R"({
  "architectures": ["DeepseekV32ForCausalLM"],
  "eos_token_id": 1,
  "first_k_dense_replace": 3,
  "hidden_act": "silu",
  "hidden_size": 7168,
  "index_head_dim": 128,
  "index_n_heads": 64,
  "index_topk": 2048,
  "intermediate_size": 18432,
  "kv_lora_rank": 512,
  "max_position_embeddings": 163840,
  "model_type": "deepseek_v32",
  "moe_intermediate_size": 2048,
  "moe_layer_freq": 1,
  "n_group": 8,
  "n_routed_experts": 256,
  "n_shared_experts": 1,
  "norm_topk_prob": true,
  "num_attention_heads": 128,
  "num_experts_per_tok": 8,
  "num_hidden_layers": 61,
  "num_key_value_heads": 128,
  "num_nextn_predict_layers": 1,
  "q_lora_rank": 1536,
  "qk_nope_head_dim": 128,
  "qk_rope_head_dim": 64,
  "rms_norm_eps": 1e-06,
  "rope_scaling": {
    "beta_fast": 32, "beta_slow": 1, "factor": 40,
    "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096,
    "type": "yarn"
  },
  "rope_theta": 10000,
  "routed_scaling_factor": 2.5,
  "scoring_func": "sigmoid",
  "tie_word_embeddings": false,
  "topk_group": 4,
  "topk_method": "noaux_tc",
  "v_head_dim": 128,
  "vocab_size": 129280
})";

constexpr std::array<std::pair<std::string_view, const char*>, 4> kConfigs = {{
    {"tiny", kTiny},
    {"glm-5.2", kGlm52},
    {"glm-4.7-flash", kGlm47Flash},
    {"deepseek-v3.2", kDeepseekV32},
}};

}  // namespace

const char* named_config(std::string_view name) {
  for (const auto& [known, text] : kConfigs) {
    if (known == name) return text;
  }
  return nullptr;
}

std::string named_configs() {
  std::string list;
  for (const auto& [known, text] : kConfigs) {
    if (!list.empty()) list += ", ";
    list += known;
  }
  return list;
}

}  // namespace ingot::model
