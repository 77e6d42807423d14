#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/rope.h"

namespace ingot::model {

// The sparse mixture-of-experts families with multi-head latent attention that Ingot knows.
enum class Family : uint8_t {
  kGlmMoeDsa,    // GLM-5, 5.1, 5.2, 5.3
  kGlm4MoeLite,  // GLM-4.7-Flash
  kDeepseekV3,
  kDeepseekV32,
};

// The key of config.json that marks weights as made up: {"seed": S}.
inline constexpr std::string_view kSyntheticWeightsKey = "ingot_synthetic_weights";

// The model_type of config.json.
std::string_view name(Family family);

// What a layer's sparse attention does: has an indexer of its own, uses the selection of the
// nearest full layer before it, or attends to everything because the model has no indexer.
enum class IndexerType : uint8_t { kNone, kFull, kShared };

// YaRN (Peng et al. 2023) as DeepSeek's configs give it.
struct Yarn {
  double factor = 1;
  double beta_fast = 32;
  double beta_slow = 1;
  double mscale = 0;          // 0: not given
  double mscale_all_dim = 0;  // the same
  int64_t original_max_position_embeddings = 0;

  friend bool operator==(const Yarn& a, const Yarn& b) = default;
};

// What config.json says of a model, in the published names. Every field was checked against the
// others: dimensions are positive and small enough that no product of two overflows 63 bits.
struct ModelConfig {
  Family family = Family::kGlmMoeDsa;
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_nextn_predict_layers = 0;  // 0 or 1
  int64_t max_position_embeddings = 0;

  int64_t num_attention_heads = 0;
  int64_t q_lora_rank = 0;
  int64_t kv_lora_rank = 0;
  int64_t qk_nope_head_dim = 0;
  int64_t qk_rope_head_dim = 0;
  int64_t v_head_dim = 0;
  double rope_theta = 0;
  std::optional<Yarn> yarn;
  kernels::RopeStyle rope_style = kernels::RopeStyle::kInterleaved;
  double rms_norm_eps = 0;

  // Sparse attention; meaningless for families without an indexer.
  int64_t index_n_heads = 0;
  int64_t index_head_dim = 0;
  int64_t index_topk = 0;
  kernels::RopeStyle indexer_rope_style = kernels::RopeStyle::kInterleaved;
  std::vector<IndexerType> indexer_types;  // one a main layer
  bool index_share_for_mtp_iteration = false;

  int64_t intermediate_size = 0;      // of dense layers
  int64_t moe_intermediate_size = 0;  // of one expert
  int64_t first_k_dense_replace = 0;
  int64_t n_routed_experts = 0;
  int64_t n_shared_experts = 0;
  int64_t num_experts_per_tok = 0;
  int64_t n_group = 1;
  int64_t topk_group = 1;
  bool norm_topk_prob = true;
  double routed_scaling_factor = 1;

  std::vector<int64_t> eos_token_ids;

  // Module names that quantization_config says are kept unquantized; for comparison with the file,
  // which decides. Names may be exact, "re:" patterns or globs, as the exporter wrote them.
  std::string quant_method;
  std::vector<std::string> unquantized_modules;

  // The weights are random numbers that `ingot synth` made, or were quantized from such.
  bool synthetic_weights = false;

  // Keys of config.json that Ingot neither reads nor knows to be harmless.
  std::vector<std::string> unread_keys;

  int64_t qk_head_dim() const { return qk_nope_head_dim + qk_rope_head_dim; }
  bool has_indexer() const { return index_topk > 0; }
  // Also for the MTP layer, whose index is num_hidden_layers: always full where there is an
  // indexer.
  IndexerType indexer_type(int64_t layer) const;
  bool is_dense(int64_t layer) const { return layer < first_k_dense_replace; }
};

// Reads a config.json of any supported family, old or new style. `source` names it in errors, which
// name the key: one missing, of the wrong type, out of range, contradicting another, or asking for
// something that Ingot does not compute.
base::Result<ModelConfig> parse_model_config(const base::json::value& document,
                                             std::string_view source);

// A model directory's config.json, or the file itself when `path` is one.
base::Result<std::filesystem::path> config_path(const std::filesystem::path& path);

// The text of a config file, bounded in size.
base::Result<std::string> read_config_text(const std::filesystem::path& path);

// read_config_text and parse_model_config in one.
base::Result<ModelConfig> load_model_config(const std::filesystem::path& path);

}  // namespace ingot::model
