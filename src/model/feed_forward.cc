#include "model/feed_forward.h"

#include "kernels/embed.h"
#include "kernels/route.h"

namespace ingot::model {

base::Result<Mlp> Mlp::create(std::string_view what, const MlpWeights& weights,
                              KernelSelector& selector) {
  Mlp mlp;
  mlp.gate_ = TRY(selector.linear(what, weights.gate));
  mlp.up_ = TRY(selector.linear(what, weights.up));
  mlp.down_ = TRY(selector.linear(what, weights.down));
  return mlp;
}

void Mlp::run(const kernels::ExecutionContext& context, int64_t rows, EncodedRows& x, float* out,
              kernels::Output output, Workspace& w) const {
  gate_(context, x.as(gate_.activation), w.gate);
  up_(context, x.as(up_.activation), w.up);
  const kernels::Activations activated = kernels::silu_multiply(
      context, w.gate, w.up, rows, gate_.weight.rows, down_.activation, w.encoded_gated);
  down_(context, activated, out, output);
}

base::Result<FeedForward> FeedForward::create(const ModelConfig& config,
                                              const LayerWeights& weights,
                                              KernelSelector& selector) {
  FeedForward layer;
  layer.config_ = &config;
  if (weights.experts.empty()) {
    layer.dense_ = TRY(Mlp::create("dense MLP", weights.dense, selector));
    return layer;
  }
  layer.router_ = TRY(selector.linear_f32("router", weights.router));
  layer.router_bias_ = f32_values(weights.router_bias);
  layer.experts_ = weights.experts;
  layer.moe_ = TRY(selector.moe(weights.experts, config.num_experts_per_tok));
  if (weights.shared.gate.present()) {
    layer.shared_ = TRY(Mlp::create("shared expert", weights.shared, selector));
  }
  return layer;
}

void FeedForward::run(const kernels::ExecutionContext& context, int64_t rows, Workspace& w) const {
  EncodedRows x(context, w.normed, rows, config_->hidden_size, w.encoded);
  if (dense_) {
    dense_->run(context, rows, x, w.hidden, kernels::Output::kAdd, w);
    return;
  }
  run_experts(context, rows, x, w);
}

void FeedForward::run_experts(const kernels::ExecutionContext& context, int64_t rows,
                              EncodedRows& x, Workspace& w) const {
  const ModelConfig& c = *config_;
  kernels::route(context, {.x = w.normed,
                           .rows = rows,
                           .gate = router_.weight,
                           .linear = router_.function,
                           .bias = router_bias_,
                           .num_groups = c.n_group,
                           .topk_groups = c.topk_group,
                           .normalize = c.norm_topk_prob,
                           .scale = static_cast<float>(c.routed_scaling_factor),
                           .choices = w.choices,
                           .affinities = w.affinities,
                           .routing = w.routing});
  moe_.function(context, {.x = x.as(moe_.activation),
                          .routing = w.routing,
                          .experts = experts_,
                          .out = w.ffn,
                          .gated = w.expert_gated,
                          .encoded = w.expert_encoded,
                          .order = w.expert_order,
                          .sums = w.expert_sums});
  if (shared_) shared_->run(context, rows, x, w.ffn, kernels::Output::kAdd, w);
  kernels::add(context, w.hidden, w.ffn, rows * c.hidden_size);
}

}  // namespace ingot::model
