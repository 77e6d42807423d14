#pragma once

#include <cstdint>

#include "base/result.h"
#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"
#include "model/attention.h"
#include "model/feed_forward.h"
#include "model/kernel_selector.h"
#include "model/kv_cache.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "model/workspace.h"

namespace ingot::model {

// One layer with its residual connections: the main model's and the MTP layer's alike.
class DecoderLayer {
 public:
  // `config` and `weights` must outlive it.
  static base::Result<DecoderLayer> create(const ModelConfig& config, const LayerWeights& weights,
                                           KernelSelector& selector);

  bool has_indexer() const { return attention_.has_indexer(); }
  bool has_experts() const { return feed_forward_.has_experts(); }

  // Updates workspace.hidden, the residual stream [rows, hidden_size], and writes the rows into
  // layer `layer` of the cache. Collective.
  void run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows, int64_t layer,
           IndexUse index_use, KvCache& cache, Workspace& workspace) const;

 private:
  DecoderLayer(const ModelConfig& config, const LayerWeights& weights, Attention attention,
               FeedForward feed_forward);

  const ModelConfig* config_;
  const float* input_norm_;
  const float* post_attention_norm_;
  Attention attention_;
  FeedForward feed_forward_;
};

}  // namespace ingot::model
