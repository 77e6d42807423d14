#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "quantize/recipe.h"
#include "tensor/checkpoint.h"
#include "tensor/safetensors_writer.h"

namespace ingot::quantize {

// What becomes of one parameter of the source.
struct PlannedTensor {
  model::Parameter parameter;
  model::StoredTensor source;  // its values, and the scales of an FP8 source
  Treatment treatment = Treatment::kKeep;
  std::string rule;  // the pattern that decided, or why it is no candidate ("a vector")

  // What is written: the values, then the scales where there are any. Kept tensors have their
  // source's name, dtype and shape; kept FP8 becomes BF16. kMxfp4: `weight` U8 [out, in / 2] and
  // `weight_scale` U8 [out, ceil(in / 32)]; kFp8Channel: `weight` F8_E4M3 [out, in] and
  // `weight_scale` F32 [out].
  std::vector<tensor::TensorSpec> outputs;
  uint64_t output_bytes = 0;

  // Whether the source's bytes are written as they are.
  bool is_copied() const { return treatment == Treatment::kKeep && source.scales == nullptr; }
};

// One file of the destination, named as the file of the source that holds the values. A file that
// holds only scales has no counterpart.
struct PlannedShard {
  std::string file_name;
  // In the order in which they are written, which is that of the safetensors library and so of
  // Quark: by dtype (F32, BF16, F16, U8), then by name. FP8 per channel, whose values and scales
  // the library would set apart, stands behind F32, so that everything is aligned to its elements.
  std::vector<PlannedTensor> tensors;
  uint64_t source_bytes = 0;  // read for it, scales included
  uint64_t output_bytes = 0;  // data, header not counted
};

// Everything that `ingot quantize` will do, decided before a byte of weights is read. Keeps
// pointers into the checkpoint, which must outlive it.
struct QuantizationPlan {
  Recipe recipe;
  std::vector<PlannedShard> shards;
  // `quantization_config.exclude`: sorted exact names of the kept 2-D weights, as Quark writes
  // them.
  std::vector<std::string> exclude;
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
};

// Errors: fused 3-D experts, a checkpoint that does not load (every error of `load_plan`), one that
// is MXFP4 already, a rule that matches nothing (with the nearest module) or decides nothing, a
// linear layer that no rule matches, experts of one layer that would end up in different formats,
// an odd number of columns for MXFP4, for FP8 a number of values that leaves the scales unaligned.
base::Result<QuantizationPlan> plan_quantization(const model::ModelConfig& config,
                                                 const model::LoadPlan& load_plan,
                                                 const tensor::Checkpoint& checkpoint,
                                                 Recipe recipe);

// The table of `--dry-run`: a row a module class and treatment with the parameters, their bytes
// before and after, and the rules that decided; then the totals, and how many files.
std::string describe(const QuantizationPlan& plan);

}  // namespace ingot::quantize
