#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"
#include "model/decoder_layer.h"
#include "model/kernel_selector.h"
#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ingot::model {

// Rows of the multi-token prediction layer. A row joins the hidden state of some position p with
// the token at p + 1, rotates by p and predicts the token at p + 2. It lies in the cache at slot p
// + 1, so that a page's rows depend on the tokens of that page's prefix alone; slot 0 has none.
struct MtpBatch {
  kernels::BatchRows rows;          // positions p, slot_offset 1
  const int32_t* tokens = nullptr;  // [rows.count], the token at p + 1
  const float* hidden = nullptr;  // rows of hidden_size: states after the final norm, or a draft's
  const int32_t* hidden_rows = nullptr;  // [rows.count], which of them each row takes
  const int32_t* logit_rows = nullptr;   // [num_logit_rows], rows that want draft logits
  int64_t num_logit_rows = 0;
  IndexUse index_use = IndexUse::kSelect;
};

// The multi-token prediction layer (DeepSeek-V3, 2024, section 2.2) in front of the main model's
// head.
class MtpLayer {
 public:
  // `config` and `weights` must outlive it.
  static base::Result<MtpLayer> create(const ModelConfig& config, const MtpWeights& weights,
                                       const kernels::Weight& embedding, KernelSelector& selector);

  bool has_indexer() const { return layer_.has_indexer(); }
  bool has_experts() const { return layer_.has_experts(); }

  // u = eh_proj(concat(rms(embed(token)), rms(hidden))) through the layer; writes the rows into the
  // cache and leaves their output in workspace.hidden. Collective.
  void run(const kernels::ExecutionContext& context, const MtpBatch& batch, KvCache& cache,
           Workspace& workspace) const;

  // The norm between this layer's output and the head.
  const float* head_norm() const { return head_norm_; }

 private:
  MtpLayer(const ModelConfig& config, const MtpWeights& weights, const kernels::Weight& embedding,
           Linear projection, DecoderLayer layer);

  const ModelConfig* config_;
  kernels::Weight embedding_;
  const float* embedding_norm_;
  const float* hidden_norm_;
  const float* head_norm_;
  Linear projection_;
  DecoderLayer layer_;
};

}  // namespace ingot::model
