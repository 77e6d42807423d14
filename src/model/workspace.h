#pragma once

#include <cstdint>

#include "base/arena.h"
#include "base/result.h"
#include "kernels/index_select.h"
#include "kernels/route.h"
#include "model/model_config.h"

namespace ingot::model {

// The largest step that a model will be asked for.
struct StepLimits {
  int64_t rows = 0;        // tokens in one step
  int64_t logit_rows = 0;  // of them with logits, at most `rows`
  int64_t context = 0;     // positions of one sequence
  int team_size = 1;
  bool mtp = false;  // the MTP layer runs as well
};

// Every buffer that a step writes besides the cache, sized once at load so that no step allocates.
// Used by one step at a time. All floats unless named otherwise; dimensions are of the config.
struct Workspace {
  // What create() takes.
  static uint64_t size_bytes(const ModelConfig& config, const StepLimits& limits);
  // Errors: not enough memory.
  static base::Result<Workspace> create(const ModelConfig& config, const StepLimits& limits);

  StepLimits limits;
  base::Arena arena;

  float* hidden = nullptr;              // [rows, hidden_size], the residual stream
  float* normed = nullptr;              // [rows, hidden_size]
  std::byte* encoded = nullptr;         // EncodedRows of the widest linear input
  std::byte* encoded_latent = nullptr;  // EncodedRows of q_lora_rank
  float* rope = nullptr;                // [rows, qk_rope_head_dim]

  float* q_latent = nullptr;     // [rows, q_lora_rank]
  float* q = nullptr;            // [rows, heads, qk_head_dim]
  float* kv = nullptr;           // [rows, kv_lora_rank + qk_rope_head_dim]
  float* attended = nullptr;     // [rows, heads, v_head_dim]
  float* row_scratch = nullptr;  // [team, max(kv_lora_rank + qk_rope_head_dim, index_head_dim)]
  float* attend_scratch = nullptr;

  float* index_q = nullptr;         // [rows, index_n_heads, index_head_dim]
  float* index_key = nullptr;       // [rows, index_head_dim]
  float* index_gates = nullptr;     // [rows, index_n_heads]
  float* index_scores = nullptr;    // [kIndexRowsPerPass, context]
  uint64_t* index_order = nullptr;  // [min(team, kIndexRowsPerPass), context]
  kernels::Selection selection;     // of the latest full layer

  float* gate = nullptr;               // [rows, widest dense or shared intermediate]
  float* up = nullptr;                 // the same
  std::byte* encoded_gated = nullptr;  // the same, encoded
  float* ffn = nullptr;                // [rows, hidden_size]
  float* choices = nullptr;            // [rows, n_routed_experts]
  float* affinities = nullptr;         // [rows, n_routed_experts]
  kernels::Routing routing;            // [rows, num_experts_per_tok]
  float* expert_gated = nullptr;       // [rows * num_experts_per_tok, 2 * moe_intermediate_size]
  std::byte* expert_encoded = nullptr;
  int32_t* expert_order = nullptr;  // [rows * num_experts_per_tok + n_routed_experts + 1]
  float* expert_sums = nullptr;     // [team, rows * num_experts_per_tok, kMoeSlabColumns]

  float* mtp_joined = nullptr;    // [rows, 2 * hidden_size], only with mtp
  float* final_hidden = nullptr;  // [logit_rows, hidden_size]
  float* logits = nullptr;        // [logit_rows, vocab_size]
};

}  // namespace ingot::model
