#include "model/decoder_layer.h"

#include "kernels/rms_norm.h"

namespace ingot::model {

DecoderLayer::DecoderLayer(const ModelConfig& config, const LayerWeights& weights,
                           Attention attention, FeedForward feed_forward)
    : config_(&config),
      input_norm_(f32_values(weights.input_norm)),
      post_attention_norm_(f32_values(weights.post_attention_norm)),
      attention_(std::move(attention)),
      feed_forward_(std::move(feed_forward)) {}

base::Result<DecoderLayer> DecoderLayer::create(const ModelConfig& config,
                                                const LayerWeights& weights,
                                                KernelSelector& selector) {
  Attention attention = TRY(Attention::create(config, weights.attention, selector));
  FeedForward feed_forward = TRY(FeedForward::create(config, weights, selector));
  return DecoderLayer(config, weights, std::move(attention), std::move(feed_forward));
}

void DecoderLayer::run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows,
                       int64_t layer, IndexUse index_use, KvCache& cache, Workspace& w) const {
  const auto norm = [&](const float* weight) {
    kernels::rms_norm(context, {.x = w.hidden,
                                .weight = weight,
                                .out = w.normed,
                                .source = nullptr,
                                .rows = rows.count,
                                .cols = config_->hidden_size,
                                .eps = static_cast<float>(config_->rms_norm_eps)});
  };
  norm(input_norm_);
  attention_.run(context, rows, layer, index_use, cache, w);
  norm(post_attention_norm_);
  feed_forward_.run(context, rows.count, w);
}

}  // namespace ingot::model
