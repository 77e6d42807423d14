#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "kernels/ledger.h"
#include "kernels/paged_cache.h"
#include "kernels/row_operations.h"
#include "model/decoder_layer.h"
#include "model/kernel_selector.h"
#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/mtp_layer.h"
#include "model/rope_parameters.h"
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
  float* hidden_out = nullptr;  // [rows.count, hidden_size] after the final norm, or null
};

// Sees what a step computes on its way; for tests and diagnosis. Called by member 0 between
// operations. Each may be empty; the MTP layer's number is num_hidden_layers.
struct ForwardObserver {
  std::function<void(int64_t layer, const kernels::BatchRows&, const kernels::Selection&)>
      on_selection = {};  // after every layer that made one
  std::function<void(int64_t layer, const kernels::BatchRows&, const kernels::Routing&)>
      on_routing = {};  // after every layer with routed experts
};

struct TransformerOptions {
  kernels::Target target = kernels::Target::kReference;
  ActivationChoice activations = ActivationChoice::kAuto;
  kernels::CacheType cache = kernels::CacheType::kF32;
};

// A model, put together from its weights with a kernel for every use: the main layers, and the MTP
// layer when the weights have it. Holds no state of any sequence: that is in the cache. Immutable;
// one step at a time uses a workspace.
class Transformer {
 public:
  // `config` and `weights` must outlive it.
  // Errors: a use without a kernel.
  static base::Result<Transformer> create(const ModelConfig& config, const Weights& weights,
                                          const TransformerOptions& options);

  const kernels::Ledger& ledger() const { return ledger_; }
  // What an ExecutionContext of this model carries.
  const kernels::RowOperations& row_operations() const { return *row_operations_; }
  bool has_mtp() const { return mtp_.has_value(); }
  // Types in which linear layers multiply, "bf16" or "bf16, int8"; the router's f32 not counted.
  const std::string& activations() const { return activations_; }

  // Computes the batch: writes its rows into the cache and leaves logits [num_logit_rows, vocab] in
  // workspace.logits. Collective. REQUIRES: the batch is within workspace.limits.
  void forward(const kernels::ExecutionContext& context, const ForwardBatch& batch, KvCache& cache,
               Workspace& workspace, const ForwardObserver* observer = nullptr) const;

  // Computes rows of the MTP layer: writes them into the cache and leaves, for the logit rows,
  // their states after the head's norm in workspace.final_hidden and draft logits in
  // workspace.logits. Collective. REQUIRES: has_mtp(), and the batch is within workspace.limits.
  void forward_mtp(const kernels::ExecutionContext& context, const MtpBatch& batch, KvCache& cache,
                   Workspace& workspace, const ForwardObserver* observer = nullptr) const;

 private:
  Transformer() = default;
  // Norms picked rows of workspace.hidden into workspace.final_hidden and multiplies by the head.
  void compute_logits(const kernels::ExecutionContext& context, const float* norm_weight,
                      const int32_t* rows, int64_t count, Workspace& workspace) const;

  const ModelConfig* config_ = nullptr;
  const kernels::RowOperations* row_operations_ = nullptr;
  kernels::Weight embedding_;
  const float* final_norm_ = nullptr;
  Linear lm_head_;
  RopeParameters rope_;
  std::vector<DecoderLayer> layers_;
  std::optional<MtpLayer> mtp_;
  kernels::Ledger ledger_;
  std::string activations_;
};

}  // namespace ingot::model
