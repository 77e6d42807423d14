#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"
#include "model/kernel_selector.h"
#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ingot::model {

// What a layer with an indexer of its own does with it.
enum class IndexUse : uint8_t {
  kSelect,  // store the rows' index keys, score, and leave a new selection
  kReuse,   // store the keys, and attend to the selection that the workspace holds
};

// The lightning indexer of a layer with an index of its own.
class Indexer {
 public:
  static base::Result<Indexer> create(const ModelConfig& config, const IndexerWeights& weights,
                                      KernelSelector& selector);

  // Stores the rows' index keys and, with kSelect, leaves their selection in the workspace. x:
  // normed input [rows, hidden]; q_latent: the attention's normed query latent [rows, q_lora_rank].
  void run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows, EncodedRows& x,
           EncodedRows& q_latent, IndexUse use, const kernels::CacheView& keys,
           Workspace& workspace) const;

 private:
  Indexer() = default;

  Linear q_b_;
  Linear k_;
  Linear gates_;
  const float* k_norm_ = nullptr;
  const float* k_norm_bias_ = nullptr;
  kernels::IndexSelectFunction select_ = nullptr;
  kernels::RopeStyle rope_style_ = kernels::RopeStyle::kInterleaved;
  int64_t heads_ = 0;
  int64_t dim_ = 0;
  int64_t rope_dim_ = 0;
};

// Multi-head latent attention, with sparse selection where the model has it.
class Attention {
 public:
  static base::Result<Attention> create(const ModelConfig& config, const AttentionWeights& weights,
                                        KernelSelector& selector);

  bool has_indexer() const { return indexer_.has_value(); }

  // workspace.hidden += attention(workspace.normed), for the batch's rows. Writes the rows into
  // layer `layer` of the cache. A layer without an indexer attends to the selection that the
  // workspace holds. Collective.
  void run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows, int64_t layer,
           IndexUse index_use, KvCache& cache, Workspace& workspace) const;

 private:
  Attention() = default;

  const ModelConfig* config_ = nullptr;
  Linear q_a_;
  Linear q_b_;
  Linear kv_a_;
  Linear o_;
  const float* q_a_norm_ = nullptr;
  const float* kv_a_norm_ = nullptr;
  kernels::Weight kv_b_;
  kernels::MlaAttendFunction attend_ = nullptr;
  float softmax_scale_ = 0;
  std::optional<Indexer> indexer_;
};

}  // namespace ingot::model
