#include "model/attention.h"

#include <cmath>

#include "kernels/latent_cache.h"
#include "kernels/rms_norm.h"
#include "model/rope_parameters.h"

namespace ingot::model {
base::Result<Indexer> Indexer::create(const ModelConfig& config, const IndexerWeights& weights,
                                      KernelSelector& selector) {
  Indexer indexer;
  indexer.q_b_ = TRY(selector.linear("indexer.wq_b", weights.q_b));
  indexer.k_ = TRY(selector.linear("indexer.wk", weights.k));
  indexer.gates_ = TRY(selector.linear("indexer.weights_proj", weights.gates));
  indexer.k_norm_ = f32_values(weights.k_norm);
  indexer.k_norm_bias_ = f32_values(weights.k_norm_bias);
  indexer.select_ = TRY(selector.index_select(config.index_n_heads, config.index_head_dim));
  indexer.rope_style_ = config.indexer_rope_style;
  indexer.heads_ = config.index_n_heads;
  indexer.dim_ = config.index_head_dim;
  indexer.rope_dim_ = config.qk_rope_head_dim;
  return indexer;
}

void Indexer::run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows,
                  EncodedRows& x, EncodedRows& q_latent, IndexUse use,
                  const kernels::CacheView& keys, Workspace& w) const {
  const bool scores = use == IndexUse::kSelect && !w.selection.takes_all(w.limits.context);
  k_(context, x.as(k_.activation), w.index_key);
  if (scores) {
    q_b_(context, q_latent.as(q_b_.activation), w.index_q);
    gates_(context, x.as(gates_.activation), w.index_gates);
  }
  kernels::index_key_write(context, {.rows = rows,
                                     .rope = w.rope,
                                     .style = rope_style_,
                                     .rope_dim = rope_dim_,
                                     .q = w.index_q,
                                     .heads = scores ? heads_ : 0,
                                     .dim = dim_,
                                     .key = w.index_key,
                                     .norm_weight = k_norm_,
                                     .norm_bias = k_norm_bias_,
                                     .keys = keys,
                                     .scratch = w.row_scratch});
  if (!scores) return;
  select_(context, {.rows = rows,
                    .q = w.index_q,
                    .gates = w.index_gates,
                    .heads = heads_,
                    .dim = dim_,
                    .keys = keys,
                    .scores = w.index_scores,
                    .order = w.index_order,
                    .context_max = w.limits.context,
                    .selection = w.selection});
}

base::Result<Attention> Attention::create(const ModelConfig& config,
                                          const AttentionWeights& weights,
                                          KernelSelector& selector) {
  Attention attention;
  attention.config_ = &config;
  attention.q_a_ = TRY(selector.linear("q_a_proj", weights.q_a));
  attention.q_b_ = TRY(selector.linear("q_b_proj", weights.q_b));
  attention.kv_a_ = TRY(selector.linear("kv_a_proj_with_mqa", weights.kv_a));
  attention.o_ = TRY(selector.linear("o_proj", weights.o));
  attention.q_a_norm_ = f32_values(weights.q_a_norm);
  attention.kv_a_norm_ = f32_values(weights.kv_a_norm);
  attention.kv_b_ = weights.kv_b;
  attention.attend_ =
      TRY(selector.mla_attend(weights.kv_b, config.num_attention_heads, config.qk_rope_head_dim));
  attention.softmax_scale_ =
      static_cast<float>(rope_parameters(config).softmax_factor /
                         std::sqrt(static_cast<double>(config.qk_head_dim())));
  if (weights.indexer.q_b.present()) {
    attention.indexer_ = TRY(Indexer::create(config, weights.indexer, selector));
  }
  return attention;
}

void Attention::run(const kernels::ExecutionContext& context, const kernels::BatchRows& rows,
                    int64_t layer, IndexUse index_use, KvCache& cache, Workspace& w) const {
  const ModelConfig& c = *config_;
  const auto eps = static_cast<float>(c.rms_norm_eps);
  EncodedRows x(context, w.normed, rows.count, c.hidden_size, w.encoded);
  q_a_(context, x.as(q_a_.activation), w.q_latent);
  kv_a_(context, x.as(kv_a_.activation), w.kv);
  kernels::rms_norm(context, {.x = w.q_latent,
                              .weight = q_a_norm_,
                              .out = w.q_latent,
                              .source = nullptr,
                              .rows = rows.count,
                              .cols = c.q_lora_rank,
                              .eps = eps});
  // The indexer needs x encoded after the query latent was: they have a buffer each.
  EncodedRows q_latent(context, w.q_latent, rows.count, c.q_lora_rank, w.encoded_latent);
  q_b_(context, q_latent.as(q_b_.activation), w.q);
  kernels::rope_and_cache_write(context, {.rows = rows,
                                          .rope = w.rope,
                                          .style = c.rope_style,
                                          .q = w.q,
                                          .heads = c.num_attention_heads,
                                          .nope_dim = c.qk_nope_head_dim,
                                          .rope_dim = c.qk_rope_head_dim,
                                          .kv = w.kv,
                                          .norm_weight = kv_a_norm_,
                                          .eps = eps,
                                          .latent_dim = c.kv_lora_rank,
                                          .latents = cache.latents(layer),
                                          .scratch = w.row_scratch});
  if (indexer_) indexer_->run(context, rows, x, q_latent, index_use, cache.index_keys(layer), w);
  attend_(context, {.rows = rows,
                    .q = w.q,
                    .kv_b = kv_b_,
                    .latents = cache.latents(layer),
                    .selection = w.selection,
                    .scale = softmax_scale_,
                    .heads = c.num_attention_heads,
                    .nope_dim = c.qk_nope_head_dim,
                    .rope_dim = c.qk_rope_head_dim,
                    .value_dim = c.v_head_dim,
                    .latent_dim = c.kv_lora_rank,
                    .out = w.attended,
                    .scratch = w.attend_scratch});
  EncodedRows attended(context, w.attended, rows.count, c.num_attention_heads * c.v_head_dim,
                       w.encoded);
  o_(context, attended.as(o_.activation), w.hidden, kernels::Output::kAdd);
}

}  // namespace ingot::model
