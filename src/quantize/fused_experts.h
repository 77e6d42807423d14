#pragma once

#include "base/result.h"
#include "model/model_config.h"
#include "tensor/checkpoint.h"

namespace ingot::quantize {

// An error for experts of a layer that are stored in one 3-D tensor, as transformers 5 saves them
// (`...mlp.experts.gate_up_proj`), with how to split them. A quantizer that goes by names passes
// them by, and most of the model stays as it was without a word.
base::Status refuse_fused_experts(const model::ModelConfig& config,
                                  const tensor::Checkpoint& checkpoint);

}  // namespace ingot::quantize
