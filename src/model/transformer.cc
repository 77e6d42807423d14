#include "model/transformer.h"

#include <cmath>

#include "base/check.h"
#include "kernels/embed.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"

namespace ingot::model {
namespace {

const float* f32_values(const Weight& vector) { return static_cast<const float*>(vector.data); }

// theta^(-2j / dim) for every rotated pair j.
std::vector<double> rope_frequencies(const ModelConfig& config) {
  std::vector<double> frequencies;
  const auto dim = static_cast<double>(config.qk_rope_head_dim);
  for (int64_t j = 0; j < config.qk_rope_head_dim / 2; ++j) {
    frequencies.push_back(std::pow(config.rope_theta, -2.0 * static_cast<double>(j) / dim));
  }
  return frequencies;
}

base::Status check_computable(const ModelConfig& config) {
  if (config.family != Family::kGlmMoeDsa) {
    return base::error("models of type {} can be inspected and not yet run; run glm_moe_dsa models",
                       name(config.family));
  }
  if (config.yarn) {
    return base::error("rope of type \"yarn\" can be inspected and not yet run");
  }
  return {};
}

}  // namespace

base::Result<Transformer> Transformer::create(const ModelConfig& config, const Weights& weights,
                                              const TransformerOptions& options) {
  TRY(check_computable(config));
  KernelSelector selector(options.target, options.activations, options.cache);
  Transformer model;
  model.config_ = &config;
  model.embedding_ = weights.embedding();
  model.final_norm_ = f32_values(weights.final_norm());
  model.rope_frequencies_ = rope_frequencies(config);
  for (const LayerWeights& layer : weights.layers()) {
    model.layers_.push_back({
      .input_norm = f32_values(layer.input_norm),
      .post_attention_norm = f32_values(layer.post_attention_norm),
      .attention = TRY(Attention::create(config, layer.attention, selector))
      , .feed_forward = TRY(FeedForward::create(config, layer, selector))
    });
  }
  model.lm_head_ = TRY(selector.linear("lm_head", weights.lm_head()));
  model.ledger_ = selector.take_ledger();
  return model;
}

void Transformer::forward(const kernels::ExecutionContext& context, const ForwardBatch& batch,
                          KvCache& cache, Workspace& w, const ForwardObserver* observer) const {
  const ModelConfig& c = *config_;
  const int64_t rows = batch.rows.count;
  CHECK(rows <= w.limits.rows && batch.num_logit_rows <= w.limits.logit_rows);
  const auto norm = [&](const float* weight, const int32_t* source, int64_t count, float* out) {
    kernels::rms_norm(context, {.x = w.hidden,
                                .weight = weight,
                                .out = out,
                                .source = source,
                                .rows = count,
                                .cols = c.hidden_size,
                                .eps = static_cast<float>(c.rms_norm_eps)});
  };
  kernels::embed(context, embedding_, batch.tokens, rows, w.hidden);
  kernels::rope_table(context, batch.rows, rope_frequencies_.data(), c.qk_rope_head_dim, w.rope);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const Layer& layer = layers_[i];
    norm(layer.input_norm, nullptr, rows, w.normed);
    layer.attention.run(context, batch.rows, static_cast<int64_t>(i), cache, w);
    if (observer != nullptr && layer.attention.has_indexer()) {
      if (context.member() == 0) {
        observer->on_selection(static_cast<int64_t>(i), batch.rows, w.selection);
      }
      context.barrier();
    }
    norm(layer.post_attention_norm, nullptr, rows, w.normed);
    layer.feed_forward.run(context, rows, w);
  }
  if (batch.num_logit_rows == 0) return;
  norm(final_norm_, batch.logit_rows, batch.num_logit_rows, w.final_hidden);
  EncodedRows hidden(context, w.final_hidden, batch.num_logit_rows, c.hidden_size, w.encoded);
  lm_head_(context, hidden.as(lm_head_.activation), w.logits);
}

}  // namespace ingot::model
