#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/arena.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/moe.h"
#include "kernels/target.h"
#include "kernels/weight.h"
#include "model/activation_choice.h"
#include "model/load_plan.h"
#include "model/model_config.h"

namespace ingot::model {

using kernels::MlpWeights;
using kernels::Weight;

struct IndexerWeights {
  Weight q_b;          // [heads * dim, q_lora_rank]
  Weight k;            // [dim, hidden]
  Weight k_norm;       // [dim] f32
  Weight k_norm_bias;  // [dim] f32
  Weight gates;        // [heads, hidden]
};

struct AttentionWeights {
  Weight q_a;              // [q_lora_rank, hidden]
  Weight q_a_norm;         // [q_lora_rank] f32
  Weight q_b;              // [heads * qk_head_dim, q_lora_rank]
  Weight kv_a;             // [kv_lora_rank + rope, hidden]
  Weight kv_a_norm;        // [kv_lora_rank] f32
  Weight kv_b;             // [heads * (nope + value), kv_lora_rank]
  Weight o;                // [hidden, heads * value]
  IndexerWeights indexer;  // present in full layers only
};

struct LayerWeights {
  Weight input_norm;           // [hidden] f32
  Weight post_attention_norm;  // [hidden] f32
  AttentionWeights attention;
  MlpWeights dense;    // of dense layers; the others have what follows
  Weight router;       // [experts, hidden]
  Weight router_bias;  // [experts] f32
  std::vector<MlpWeights> experts;
  MlpWeights shared;  // absent when the model has no shared expert
};

// The multi-token prediction layer: a decoder layer behind a projection of two normed inputs.
struct MtpWeights {
  Weight embedding_norm;  // [hidden] f32
  Weight hidden_norm;     // [hidden] f32
  Weight projection;      // [hidden, 2 * hidden], the embedding's half first
  Weight head_norm;       // [hidden] f32
  LayerWeights layer;
};

// Whether the MTP layer is wanted; without it there is no speculation and its memory is saved.
enum class MtpChoice : uint8_t { kLeaveOut, kLoad };

// What the weights are held for: it decides their layout.
struct HeldFor {
  kernels::Target target = kernels::Target::kReference;
  ActivationChoice activations = ActivationChoice::kAuto;
};

// The parameters in memory, each once, in the format of held_format. Immutable after loading and
// then safe to read from any thread.
class Weights {
 public:
  // Reads what the plan lists, tensor by tensor and shared out among the team, into one arena,
  // packs it for the kernels that will read it, and drops the source from the page cache on the
  // way.
  // REQUIRES: plan.check() passed, and plan.has_mtp if the MTP layer is to be loaded.
  // Errors: not enough memory, unreadable bytes, NaN or infinity in a tensor of values or scales
  // (named).
  static base::Result<Weights> load(const ModelConfig& config, const LoadPlan& plan, MtpChoice mtp,
                                    const HeldFor& held_for, const tensor::Checkpoint& checkpoint,
                                    base::ThreadTeam& team, const base::Clock& clock);

  // Formats and shapes alone, without data: enough to choose kernels.
  static base::Result<Weights> shapes_of(const ModelConfig& config, const LoadPlan& plan,
                                         MtpChoice mtp, const HeldFor& held_for);

  const Weight& embedding() const { return embedding_; }
  const Weight& final_norm() const { return final_norm_; }
  const Weight& lm_head() const { return lm_head_; }
  const std::vector<LayerWeights>& layers() const { return layers_; }
  // Null when it was left out.
  const MtpWeights* mtp() const { return mtp_ ? &*mtp_ : nullptr; }
  uint64_t size_bytes() const { return arena_.used_bytes(); }

 private:
  Weights() = default;
  Weight& slot(const Parameter& parameter);

  base::Arena arena_;
  Weight embedding_;
  Weight final_norm_;
  Weight lm_head_;
  std::vector<LayerWeights> layers_;
  std::optional<MtpWeights> mtp_;
};

// The values of a vector that is held as f32.
inline const float* f32_values(const Weight& vector) {
  return static_cast<const float*>(vector.data);
}

// In what format a parameter is held: as stored, but vectors (norms, biases) in f32, and a
// quantized kv_b_proj in bf16. Absorbed attention sums its keys' half over output rows, across
// whose scales no accumulator reaches.
kernels::WeightFormat held_format(const PlanRow& row);

// In what layout: panels where the fastest kernel that multiplies with it reads them. An embedding
// table is read by rows, kv_b_proj along both of its dimensions, and experts are all alike.
kernels::WeightLayout held_layout(const PlanRow& row, const HeldFor& held_for);

// Index of the first of a tensor's values, or of its scales, that is NaN or infinite. Values of
// MXFP4 never are.
std::optional<int64_t> find_non_finite(kernels::WeightFormat format, const void* data,
                                       int64_t count);
std::optional<int64_t> find_non_finite_scale(kernels::WeightFormat format, const void* scales,
                                             int64_t count);

}  // namespace ingot::model
