#include "model/transformer.h"

#include "base/check.h"
#include "kernels/embed.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"

namespace ingot::model {
namespace {

// Shows what a layer decided to the observer while no member works on the next one.
void observe(const kernels::ExecutionContext& context, const ForwardObserver* observer,
             int64_t layer, const kernels::BatchRows& rows, bool selected, bool routed,
             const Workspace& w) {
  if (observer == nullptr) return;
  if (context.member() == 0) {
    if (selected && observer->on_selection) observer->on_selection(layer, rows, w.selection);
    if (routed && observer->on_routing) observer->on_routing(layer, rows, w.routing);
  }
  context.barrier();
}

}  // namespace

base::Result<Transformer> Transformer::create(const ModelConfig& config, const Weights& weights,
                                              const TransformerOptions& options) {
  KernelSelector selector(options.target, options.activations, options.cache);
  Transformer model;
  model.config_ = &config;
  model.row_operations_ = &kernels::row_operations(options.target);
  model.embedding_ = weights.embedding();
  model.final_norm_ = f32_values(weights.final_norm());
  model.rope_ = rope_parameters(config);
  for (const LayerWeights& layer : weights.layers()) {
    model.layers_.push_back(TRY(DecoderLayer::create(config, layer, selector)));
  }
  model.lm_head_ = TRY(selector.linear("lm_head", weights.lm_head()));
  if (weights.mtp() != nullptr) {
    model.mtp_ = TRY(MtpLayer::create(config, *weights.mtp(), weights.embedding(), selector));
  }
  model.activations_ = selector.activations();
  model.ledger_ = selector.take_ledger();
  return model;
}

void Transformer::forward(const kernels::ExecutionContext& context, const ForwardBatch& batch,
                          KvCache& cache, Workspace& w, const ForwardObserver* observer) const {
  const ModelConfig& c = *config_;
  const int64_t rows = batch.rows.count;
  CHECK(rows <= w.limits.rows && batch.num_logit_rows <= w.limits.logit_rows);
  kernels::embed(context, embedding_, batch.tokens, rows, w.hidden);
  kernels::rope_table(context, batch.rows, rope_.frequencies.data(), rope_.amplitude,
                      c.qk_rope_head_dim, w.rope);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    layers_[i].run(context, batch.rows, layer, IndexUse::kSelect, cache, w);
    observe(context, observer, layer, batch.rows, layers_[i].has_indexer(),
            layers_[i].has_experts(), w);
  }
  if (batch.hidden_out != nullptr) {
    kernels::rms_norm(context, {.x = w.hidden,
                                .weight = final_norm_,
                                .out = batch.hidden_out,
                                .source = nullptr,
                                .rows = rows,
                                .cols = c.hidden_size,
                                .eps = static_cast<float>(c.rms_norm_eps)});
  }
  compute_logits(context, final_norm_, batch.logit_rows, batch.num_logit_rows, w);
}

void Transformer::forward_mtp(const kernels::ExecutionContext& context, const MtpBatch& batch,
                              KvCache& cache, Workspace& w, const ForwardObserver* observer) const {
  const ModelConfig& c = *config_;
  CHECK(batch.rows.count <= w.limits.rows && batch.num_logit_rows <= w.limits.logit_rows);
  kernels::rope_table(context, batch.rows, rope_.frequencies.data(), rope_.amplitude,
                      c.qk_rope_head_dim, w.rope);
  mtp_->run(context, batch, cache, w);
  observe(context, observer, c.num_hidden_layers, batch.rows,
          mtp_->has_indexer() && batch.index_use == IndexUse::kSelect, mtp_->has_experts(), w);
  compute_logits(context, mtp_->head_norm(), batch.logit_rows, batch.num_logit_rows, w);
}

void Transformer::compute_logits(const kernels::ExecutionContext& context, const float* norm_weight,
                                 const int32_t* rows, int64_t count, Workspace& w) const {
  if (count == 0) return;
  kernels::rms_norm(context, {.x = w.hidden,
                              .weight = norm_weight,
                              .out = w.final_hidden,
                              .source = rows,
                              .rows = count,
                              .cols = config_->hidden_size,
                              .eps = static_cast<float>(config_->rms_norm_eps)});
  EncodedRows hidden(context, w.final_hidden, count, config_->hidden_size, w.encoded);
  lm_head_(context, hidden.as(lm_head_.activation), w.logits);
}

}  // namespace ingot::model
