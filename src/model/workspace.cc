#include "model/workspace.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/check.h"
#include "kernels/activations.h"
#include "kernels/mla_attend.h"
#include "kernels/moe.h"
#include "model/kernel_selector.h"

namespace ingot::model {
namespace {

// What a model without an indexer attends to.
constexpr int64_t kEverything = std::numeric_limits<int64_t>::max();

// Pieces of one arena, measured before it is made and handed out after.
class Layout {
 public:
  template <typename T>
  void add(T*& pointer, int64_t count) {
    const auto size_bytes = static_cast<uint64_t>(count) * sizeof(T);
    total_bytes_ += base::Arena::padded(size_bytes);
    pieces_.push_back({.size_bytes = size_bytes, .place = [&pointer](std::byte* data) {
                         pointer = reinterpret_cast<T*>(data);
                       }});
  }

  uint64_t size_bytes() const { return total_bytes_; }

  base::Result<base::Arena> allocate() {
    base::Arena arena = TRY(base::Arena::create(total_bytes_, "the workspace of a step"));
    for (const Piece& piece : pieces_) piece.place(arena.allocate(piece.size_bytes));
    return arena;
  }

 private:
  struct Piece {
    uint64_t size_bytes;
    std::function<void(std::byte* data)> place;
  };
  std::vector<Piece> pieces_;
  uint64_t total_bytes_ = 0;
};

// Lists the buffers of `w`, which has to stay where it is until they are placed.
Layout layout_of(Workspace& w, const ModelConfig& c, const StepLimits& limits) {
  CHECK(limits.logit_rows <= limits.rows);
  const int64_t rows = limits.rows;
  const int64_t team = limits.team_size;
  const int64_t intermediate =
      std::max(c.intermediate_size, c.moe_intermediate_size * c.n_shared_experts);
  const int64_t latent_width = c.kv_lora_rank + c.qk_rope_head_dim;
  const int64_t pairs = rows * c.num_experts_per_tok;
  w.limits = limits;
  Layout layout;
  layout.add(w.hidden, rows * c.hidden_size);
  layout.add(w.normed, rows * c.hidden_size);
  const int64_t widest_input = std::max(limits.mtp ? 2 * c.hidden_size : c.hidden_size,
                                        c.num_attention_heads * c.v_head_dim);
  layout.add(w.encoded, EncodedRows::buffer_bytes(rows, widest_input));
  layout.add(w.encoded_latent, EncodedRows::buffer_bytes(rows, c.q_lora_rank));
  layout.add(w.rope, rows * c.qk_rope_head_dim);
  layout.add(w.q_latent, rows * c.q_lora_rank);
  layout.add(w.q, rows * c.num_attention_heads * c.qk_head_dim());
  layout.add(w.kv, rows * latent_width);
  layout.add(w.attended, rows * c.num_attention_heads * c.v_head_dim);
  layout.add(w.row_scratch, team * std::max(latent_width, c.index_head_dim));
  layout.add(w.attend_scratch,
             team * kernels::mla_attend_scratch_floats(c.num_attention_heads, c.kv_lora_rank,
                                                       c.qk_rope_head_dim));
  w.selection.topk = c.has_indexer() ? c.index_topk : kEverything;
  if (c.has_indexer()) {
    layout.add(w.index_q, rows * c.index_n_heads * c.index_head_dim);
    layout.add(w.index_key, rows * c.index_head_dim);
    layout.add(w.index_gates, rows * c.index_n_heads);
  }
  if (!w.selection.takes_all(limits.context)) {
    layout.add(w.index_scores, kernels::kIndexRowsPerPass * limits.context);
    layout.add(w.index_order, std::min(team, kernels::kIndexRowsPerPass) * limits.context);
    layout.add(w.selection.positions, rows * w.selection.topk);
  }
  layout.add(w.gate, rows * intermediate);
  layout.add(w.up, rows * intermediate);
  layout.add(w.encoded_gated, rows * kernels::encoded_row_bytes_max(intermediate));
  layout.add(w.ffn, rows * c.hidden_size);
  layout.add(w.choices, rows * c.n_routed_experts);
  layout.add(w.affinities, rows * c.n_routed_experts);
  w.routing.experts_per_token = c.num_experts_per_tok;
  layout.add(w.routing.experts, pairs);
  layout.add(w.routing.weights, pairs);
  layout.add(w.expert_gated, pairs * 2 * c.moe_intermediate_size);
  layout.add(w.expert_encoded, pairs * kernels::encoded_row_bytes_max(c.moe_intermediate_size));
  layout.add(w.expert_order, pairs + c.n_routed_experts + 1);
  layout.add(w.expert_sums, team * pairs * kernels::kMoeSlabColumns);
  if (limits.mtp) layout.add(w.mtp_joined, rows * 2 * c.hidden_size);
  layout.add(w.final_hidden, limits.logit_rows * c.hidden_size);
  layout.add(w.logits, limits.logit_rows * c.vocab_size);
  return layout;
}

}  // namespace

uint64_t Workspace::size_bytes(const ModelConfig& config, const StepLimits& limits) {
  Workspace measured;
  return layout_of(measured, config, limits).size_bytes();
}

base::Result<Workspace> Workspace::create(const ModelConfig& config, const StepLimits& limits) {
  Workspace w;
  w.arena = TRY(layout_of(w, config, limits).allocate());
  return w;
}

}  // namespace ingot::model
