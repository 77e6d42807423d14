#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "kernels/ledger.h"
#include "kernels/paged_cache.h"
#include "model/attention.h"
#include "model/feed_forward.h"
#include "model/kernel_selector.h"
#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ingot::model {

// The rows of one step: tokens of several sequences at once, prefill and decode mixed. Rows of one
// sequence have ascending positions, and all earlier positions are in the cache or in this batch.
struct ForwardBatch {
  kernels::BatchRows rows;
  const int32_t* tokens = nullptr;      // [rows.count], each in [0, vocab_size)
  const int32_t* logit_rows = nullptr;  // [num_logit_rows], rows that want logits
  int64_t num_logit_rows = 0;
};

// Sees what a step computes on its way; for tests and diagnosis. Called by member 0 between
// operations.
struct ForwardObserver {
  std::function<void(int64_t layer, const kernels::BatchRows&, const kernels::Selection&)>
      on_selection;  // after every full layer's indexer ran
};

struct TransformerOptions {
  kernels::Target target = kernels::Target::kReference;
  ActivationChoice activations = ActivationChoice::kAuto;
  kernels::CacheType cache = kernels::CacheType::kF32;
};

// The main layers of a model, put together from its weights with a kernel for every use. Holds no
// state of any sequence: that is in the cache. Immutable; one step at a time uses a workspace.
class Transformer {
 public:
  // `config` and `weights` must outlive it.
  // Errors: a family or rope that is not computed yet, or a use without a kernel.
  static base::Result<Transformer> create(const ModelConfig& config, const Weights& weights,
                                          const TransformerOptions& options);

  const kernels::Ledger& ledger() const { return ledger_; }

  // Computes the batch: writes its rows into the cache and leaves logits [num_logit_rows, vocab] in
  // workspace.logits. Collective. REQUIRES: the batch is within workspace.limits.
  void forward(const kernels::ExecutionContext& context, const ForwardBatch& batch, KvCache& cache,
               Workspace& workspace, const ForwardObserver* observer = nullptr) const;

 private:
  struct Layer {
    const float* input_norm;
    const float* post_attention_norm;
    Attention attention;
    FeedForward feed_forward;
  };

  Transformer() = default;

  const ModelConfig* config_ = nullptr;
  kernels::Weight embedding_;
  const float* final_norm_ = nullptr;
  Linear lm_head_;
  std::vector<double> rope_frequencies_;  // radians a position, one a rotated pair
  std::vector<Layer> layers_;
  kernels::Ledger ledger_;
};

}  // namespace ingot::model
