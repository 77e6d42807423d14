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
  // source's name, dtype and shape; kept FP8 becomes BF16.
  std::vector<tensor::TensorSpec> outputs;
  uint64_t output_bytes = 0;

  // Whether the source's bytes are written as they are.
  bool is_copied() const { return treatment == Treatment::kKeep && source.scales == nullptr; }
};

// One file of the destination, named as the file of the source that holds the values.
struct PlannedShard {
  std::string file_name;
  std::vector<PlannedTensor> tensors;  // in the order in which they are written
  uint64_t source_bytes = 0;           // read for it, scales included
  uint64_t output_bytes = 0;           // data, header not counted
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

// Errors: a checkpoint that does not load (every error of `load_plan`), one that is MXFP4 already,
// fused 3-D experts, a rule that matches nothing (with the nearest module), a linear layer that no
// rule matches, experts of one layer that would end up in different formats, an odd number of
// columns for MXFP4, a dtype that cannot be rounded.
base::Result<QuantizationPlan> plan_quantization(const model::ModelConfig& config,
                                                 const model::LoadPlan& load_plan,
                                                 const tensor::Checkpoint& checkpoint,
                                                 Recipe recipe);

// The table of `--dry-run`: a row a module class and treatment with tensors, bytes before and
// after, and the rules that decided.
std::string describe(const QuantizationPlan& plan);

}  // namespace ingot::quantize
