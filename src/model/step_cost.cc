#include "model/step_cost.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "base/check.h"
#include "kernels/panels.h"

namespace ingot::model {
namespace {

using kernels::ActivationType;
using Operation = MacKind::Operation;

double held_bytes(const Weight& weight) {
  return static_cast<double>(kernels::held_data_bytes(weight) + kernels::held_scale_bytes(weight));
}

double elements(const Weight& weight) {
  return static_cast<double>(weight.rows) * static_cast<double>(weight.cols);
}

int64_t count_rows(const StepRows& rows) {
  int64_t count = 0;
  for (const SequenceRows& sequence : rows.sequences) count += sequence.count;
  return count;
}

// 1 + 2 + ... + n
double sum_to(int64_t n) { return static_cast<double>(n) * static_cast<double>(n + 1) / 2; }

// The sum of min(n, cap) over n from `first` to `last`.
double capped_sum(int64_t first, int64_t last, int64_t cap) {
  const int64_t last_below = std::clamp(cap, first - 1, last);
  return sum_to(last_below) - sum_to(first - 1) +
         static_cast<double>(cap) * static_cast<double>(last - last_below);
}

}  // namespace

std::string name(const MacKind& kind) {
  switch (kind.operation) {
    case Operation::kLinear:
      return fmt::format("{} x {}", name(kind.weight), name(kind.activation));
    case Operation::kAttention:
      return "attention";
    case Operation::kIndex:
      return "index";
  }
  return "";
}

kernels::Arithmetic arithmetic(const MacKind& kind) {
  if (kind.operation != Operation::kLinear) return kernels::Arithmetic::kF32;
  switch (kind.activation) {
    case ActivationType::kF32:
      return kernels::Arithmetic::kF32;
    case ActivationType::kBF16:
      return kernels::Arithmetic::kBF16;
    case ActivationType::kInt8:
      // Only codes of 4 bits are small integers; of all else products are floating point.
      return kind.weight == kernels::WeightFormat::kMxfp4 ? kernels::Arithmetic::kInt8
                                                          : kernels::Arithmetic::kF32;
  }
  return kernels::Arithmetic::kF32;
}

StepFloor step_floor(const StepCost& cost, const MachineRates& rates) {
  StepFloor floor{.read_seconds = cost.bytes() / rates.read_bytes_per_second};
  const auto rate = [&](kernels::Arithmetic numbers) {
    switch (numbers) {
      case kernels::Arithmetic::kF32:
        return rates.f32_macs_per_second;
      case kernels::Arithmetic::kBF16:
        return rates.bf16_macs_per_second;
      case kernels::Arithmetic::kInt8:
        return rates.int8_macs_per_second;
    }
    return rates.f32_macs_per_second;
  };
  for (const auto& [kind, count] : cost.macs) floor.mac_seconds += count / rate(arithmetic(kind));
  return floor;
}

double StepCost::total_macs() const {
  double sum = 0;
  for (const auto& [kind, count] : macs) sum += count;
  return sum;
}

StepCost& StepCost::operator+=(const StepCost& other) {
  weight_bytes += other.weight_bytes;
  cache_bytes += other.cache_bytes;
  for (const auto& [kind, count] : other.macs) macs[kind] += count;
  return *this;
}

double expected_experts(int64_t num_experts, int64_t experts_per_token, int64_t rows) {
  const auto all = static_cast<double>(num_experts);
  const double left_out_by_one = 1 - static_cast<double>(experts_per_token) / all;
  return all * (1 - std::pow(left_out_by_one, static_cast<double>(rows)));
}

StepCostModel::StepCostModel(const ModelConfig& config, const Weights& weights,
                             ActivationChoice activations, kernels::CacheType cache) {
  for (const LayerWeights& of_layer : weights.layers()) {
    layers_.push_back(layer(config, of_layer, activations));
  }
  if (const MtpWeights* mtp = weights.mtp()) {
    mtp_layer_ = layer(config, mtp->layer, activations);
    mtp_layer_->of_every_row.push_back(
        matrix(mtp->projection, activation_type(activations, mtp->projection.format)));
  }
  head_ = matrix(weights.lm_head(), activation_type(activations, weights.lm_head().format));
  embedding_row_bytes_ =
      held_bytes(weights.embedding()) / static_cast<double>(weights.embedding().rows);
  latent_row_bytes_ = static_cast<double>(kernels::cache_row_bytes(
      cache, config.kv_lora_rank + config.qk_rope_head_dim, config.kv_lora_rank));
  attention_macs_per_key_ = static_cast<double>(
      config.num_attention_heads * (2 * config.kv_lora_rank + config.qk_rope_head_dim));
  if (config.has_indexer()) {
    index_topk_ = config.index_topk;
    index_row_bytes_ = static_cast<double>(
        kernels::cache_row_bytes(kernels::index_key_type(cache), config.index_head_dim, 0));
    index_macs_per_key_ = static_cast<double>(config.index_n_heads * config.index_head_dim);
  }
  num_experts_ = config.n_routed_experts;
  experts_per_token_ = config.num_experts_per_tok;
}

StepCostModel::Matrix StepCostModel::matrix(const Weight& weight, ActivationType activation) {
  return {.kind = {.weight = weight.format, .activation = activation},
          .bytes = held_bytes(weight),
          .macs = elements(weight)};
}

StepCostModel::Layer StepCostModel::layer(const ModelConfig& config, const LayerWeights& weights,
                                          ActivationChoice activations) const {
  const auto chosen = [&](const Weight& weight) {
    return matrix(weight, activation_type(activations, weight.format));
  };
  Layer layer;
  const AttentionWeights& attention = weights.attention;
  for (const Weight* weight : {&attention.q_a, &attention.q_b, &attention.kv_a, &attention.o}) {
    layer.of_every_row.push_back(chosen(*weight));
  }
  layer.kv_b_bytes = held_bytes(attention.kv_b);
  layer.kv_b_macs = elements(attention.kv_b);
  const IndexerWeights& indexer = attention.indexer;
  if (indexer.k.present()) {
    layer.of_every_row.push_back(chosen(indexer.k));
    layer.of_scored_rows = {chosen(indexer.q_b), chosen(indexer.gates)};
  }
  const auto add_mlp = [&](const MlpWeights& mlp) {
    for (const Weight* weight : {&mlp.gate, &mlp.up, &mlp.down}) {
      if (weight->present()) layer.of_every_row.push_back(chosen(*weight));
    }
  };
  if (weights.experts.empty()) {
    add_mlp(weights.dense);
    return layer;
  }
  CHECK(static_cast<int64_t>(weights.experts.size()) == config.n_routed_experts);
  layer.of_every_row.push_back(matrix(weights.router, ActivationType::kF32));
  add_mlp(weights.shared);
  const MlpWeights& first = weights.experts.front();
  Matrix expert = chosen(first.gate);
  for (const Weight* weight : {&first.up, &first.down}) {
    expert.bytes += held_bytes(*weight);
    expert.macs += elements(*weight);
  }
  layer.expert = expert;
  return layer;
}

int64_t StepCostModel::num_moe_layers() const {
  return std::ranges::count_if(layers_,
                               [](const Layer& layer) { return layer.expert.has_value(); });
}

StepCost StepCostModel::main(const StepRows& rows) const {
  StepCost cost;
  const auto moe_layers = static_cast<double>(num_moe_layers());
  for (const Layer& layer : layers_) {
    add_layer(layer, rows, cost);
    if (!layer.expert) continue;
    add_experts(layer, rows,
                rows.experts_read
                    ? *rows.experts_read / moe_layers
                    : expected_experts(num_experts_, experts_per_token_, count_rows(rows)),
                cost);
  }
  cost.weight_bytes += embedding_row_bytes_ * static_cast<double>(count_rows(rows));
  add_head(rows, cost);
  return cost;
}

StepCost StepCostModel::mtp(const StepRows& rows) const {
  CHECK(has_mtp());
  StepCost cost;
  add_layer(*mtp_layer_, rows, cost);
  if (mtp_layer_->expert) {
    add_experts(*mtp_layer_, rows,
                rows.experts_read.value_or(
                    expected_experts(num_experts_, experts_per_token_, count_rows(rows))),
                cost);
  }
  cost.weight_bytes += embedding_row_bytes_ * static_cast<double>(count_rows(rows));
  add_head(rows, cost);
  return cost;
}

void StepCostModel::add_layer(const Layer& layer, const StepRows& rows, StepCost& cost) const {
  const auto num_rows = static_cast<double>(count_rows(rows));
  for (const Matrix& matrix : layer.of_every_row) {
    cost.weight_bytes += matrix.bytes;
    cost.macs[matrix.kind] += matrix.macs * num_rows;
  }
  cost.weight_bytes += layer.kv_b_bytes;
  cost.macs[{.operation = Operation::kAttention}] += layer.kv_b_macs * num_rows;
  add_attention(layer, rows, cost);
}

void StepCostModel::add_experts(const Layer& layer, const StepRows& rows, double experts_read,
                                StepCost& cost) const {
  cost.weight_bytes += layer.expert->bytes * experts_read;
  cost.macs[layer.expert->kind] +=
      layer.expert->macs * static_cast<double>(experts_per_token_ * count_rows(rows));
}

// A row at position p has p + 1 keys, of which an index leaves index_topk at most; it must be asked
// where there are more.
void StepCostModel::add_attention(const Layer& layer, const StepRows& rows, StepCost& cost) const {
  int64_t scored_rows = 0;
  for (const SequenceRows& sequence : rows.sequences) {
    const int64_t first = sequence.first_position + 1;
    const int64_t last = sequence.first_position + sequence.count;
    const int64_t cap = index_topk_ == 0 ? last : index_topk_;
    cost.macs[{.operation = Operation::kAttention}] +=
        attention_macs_per_key_ * capped_sum(first, last, cap);
    // Rows of one sequence may all have selected the same keys; more cannot be known.
    cost.cache_bytes += latent_row_bytes_ * static_cast<double>(std::min(last, cap));
    if (layer.of_scored_rows.empty() || rows.index_use == IndexUse::kReuse || last <= cap) continue;
    const int64_t first_scored = std::max(first, cap + 1);
    scored_rows += last - first_scored + 1;
    cost.macs[{.operation = Operation::kIndex}] +=
        index_macs_per_key_ * (sum_to(last) - sum_to(first_scored - 1));
    cost.cache_bytes += index_row_bytes_ * static_cast<double>(last);
  }
  if (scored_rows == 0) return;
  for (const Matrix& matrix : layer.of_scored_rows) {
    cost.weight_bytes += matrix.bytes;
    cost.macs[matrix.kind] += matrix.macs * static_cast<double>(scored_rows);
  }
}

void StepCostModel::add_head(const StepRows& rows, StepCost& cost) const {
  if (rows.logit_rows == 0) return;
  cost.weight_bytes += head_.bytes;
  cost.macs[head_.kind] += head_.macs * static_cast<double>(rows.logit_rows);
}

}  // namespace ingot::model
