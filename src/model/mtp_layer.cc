#include "model/mtp_layer.h"

#include "kernels/embed.h"
#include "kernels/rms_norm.h"

namespace ingot::model {

MtpLayer::MtpLayer(const ModelConfig& config, const MtpWeights& weights,
                   const kernels::Weight& embedding, Linear projection, DecoderLayer layer)
    : config_(&config),
      embedding_(embedding),
      embedding_norm_(f32_values(weights.embedding_norm)),
      hidden_norm_(f32_values(weights.hidden_norm)),
      head_norm_(f32_values(weights.head_norm)),
      projection_(projection),
      layer_(std::move(layer)) {}

base::Result<MtpLayer> MtpLayer::create(const ModelConfig& config, const MtpWeights& weights,
                                        const kernels::Weight& embedding,
                                        KernelSelector& selector) {
  const Linear projection = TRY(selector.linear("eh_proj", weights.projection));
  DecoderLayer layer = TRY(DecoderLayer::create(config, weights.layer, selector));
  return MtpLayer(config, weights, embedding, projection, std::move(layer));
}

void MtpLayer::run(const kernels::ExecutionContext& context, const MtpBatch& batch, KvCache& cache,
                   Workspace& w) const {
  const int64_t hidden_size = config_->hidden_size;
  const int64_t count = batch.rows.count;
  // The embedding fills the first half of the joined row, the hidden state the second.
  const auto norm = [&](const float* x, const float* weight, const int32_t* source, float* out) {
    kernels::rms_norm(context, {.x = x,
                                .weight = weight,
                                .out = out,
                                .source = source,
                                .rows = count,
                                .cols = hidden_size,
                                .eps = static_cast<float>(config_->rms_norm_eps),
                                .out_stride = 2 * hidden_size});
  };
  kernels::embed(context, embedding_, batch.tokens, count, w.normed);
  norm(w.normed, embedding_norm_, nullptr, w.mtp_joined);
  norm(batch.hidden, hidden_norm_, batch.hidden_rows, w.mtp_joined + hidden_size);
  EncodedRows joined(context, w.mtp_joined, count, 2 * hidden_size, w.encoded);
  projection_(context, joined.as(projection_.activation), w.hidden);
  layer_.run(context, batch.rows, config_->num_hidden_layers, batch.index_use, cache, w);
}

}  // namespace ingot::model
