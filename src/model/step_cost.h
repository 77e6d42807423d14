#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "kernels/activations.h"
#include "kernels/paged_cache.h"
#include "kernels/probe.h"
#include "kernels/weight.h"
#include "model/attention.h"
#include "model/kernel_selector.h"
#include "model/model_config.h"
#include "model/weights.h"

namespace ingot::model {

// What a step must read and multiply at least, counted from shapes: with the rates that a machine
// reaches, the floor of its time. Norms, softmax and other work of a few operations a value are
// left out, and so is what a step writes.

// Products of one kind: of weights with activations, of queries with cached latents and kv_b_proj,
// or of index queries with cached keys.
struct MacKind {
  enum class Operation : uint8_t { kLinear, kAttention, kIndex } operation = Operation::kLinear;
  kernels::WeightFormat weight = kernels::WeightFormat::kF32;          // of kLinear
  kernels::ActivationType activation = kernels::ActivationType::kF32;  // the same
  auto operator<=>(const MacKind&) const = default;
};
// "mxfp4 x int8", "attention", "index"
std::string name(const MacKind& kind);

struct StepCost {
  double weight_bytes = 0;  // each matrix once, of routed experts those that are chosen
  double cache_bytes = 0;   // rows of latents and index keys that are read, each once a sequence
  std::map<MacKind, double> macs;

  double bytes() const { return weight_bytes + cache_bytes; }
  double total_macs() const;
  StepCost& operator+=(const StepCost& other);
};

// In what numbers such products may be formed at best.
kernels::Arithmetic arithmetic(const MacKind& kind);

// What a machine reaches at most.
struct MachineRates {
  double read_bytes_per_second = 0;
  double f32_macs_per_second = 0;
  double bf16_macs_per_second = 0;  // that of f32 where nothing faster multiplies bf16
  double int8_macs_per_second = 0;
};

// The least time for a step: reading and multiplying may overlap, different products may not.
struct StepFloor {
  double read_seconds = 0;
  double mac_seconds = 0;
  double seconds() const { return std::max(read_seconds, mac_seconds); }
};
StepFloor step_floor(const StepCost& cost, const MachineRates& rates);

// Rows of one sequence: positions [first_position, first_position + count).
struct SequenceRows {
  int64_t first_position = 0;
  int64_t count = 1;
};

struct StepRows {
  std::vector<SequenceRows> sequences;
  int64_t logit_rows = 0;
  // Distinct experts that the rows chose, summed over layers. Absent: as many as are to be expected
  // when every row chooses all experts alike.
  std::optional<double> experts_read = {};
  IndexUse index_use = IndexUse::kSelect;
};

// How many of `num_experts` are chosen at least once when each of `rows` chooses
// `experts_per_token`, all alike.
double expected_experts(int64_t num_experts, int64_t experts_per_token, int64_t rows);

// The matrices of a model as steps read them. A plain value.
class StepCostModel {
 public:
  // `weights` may be shapes alone.
  StepCostModel(const ModelConfig& config, const Weights& weights, ActivationChoice activations,
                kernels::CacheType cache);

  // The main layers, and lm_head where rows want logits.
  StepCost main(const StepRows& rows) const;
  // The MTP layer, and lm_head where rows want drafts. REQUIRES: the weights have it.
  StepCost mtp(const StepRows& rows) const;

  bool has_mtp() const { return mtp_layer_.has_value(); }
  int64_t num_moe_layers() const;  // of the main layers

 private:
  struct Matrix {
    MacKind kind;
    double bytes;
    double macs;  // of one row
  };
  struct Layer {
    std::vector<Matrix> of_every_row;
    std::vector<Matrix> of_scored_rows;  // the indexer's, where a selection is to be made
    std::optional<Matrix> expert;        // one routed expert, all three projections
    double kv_b_bytes = 0;
    double kv_b_macs = 0;  // of one row: absorbing its query and making its values
  };

  static Matrix matrix(const Weight& weight, kernels::ActivationType activation);
  Layer layer(const ModelConfig& config, const LayerWeights& weights,
              ActivationChoice activations) const;
  void add_layer(const Layer& layer, const StepRows& rows, StepCost& cost) const;
  void add_experts(const Layer& layer, const StepRows& rows, double experts_read,
                   StepCost& cost) const;
  void add_attention(const Layer& layer, const StepRows& rows, StepCost& cost) const;
  void add_head(const StepRows& rows, StepCost& cost) const;

  std::vector<Layer> layers_;
  std::optional<Layer> mtp_layer_;
  Matrix head_{};
  double embedding_row_bytes_ = 0;
  double latent_row_bytes_ = 0;
  double index_row_bytes_ = 0;
  double attention_macs_per_key_ = 0;
  double index_macs_per_key_ = 0;
  int64_t index_topk_ = 0;  // 0: attends to everything
  int64_t num_experts_ = 0;
  int64_t experts_per_token_ = 0;
};

}  // namespace ingot::model
