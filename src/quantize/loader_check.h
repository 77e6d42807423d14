#pragma once

#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "tensor/checkpoint.h"

namespace ingot::quantize {

// Programs that load the checkpoints that Ingot and Quark write.
enum class Loader : uint8_t { kSglang, kVllm };
std::string_view name(Loader loader);  // "sglang", "vllm"

// What a loader would make of a checkpoint: it builds each module in the format that the
// quantization_config of config.json gives its name, by its own rules of matching, and then fills
// it from the file. A finding for every tensor that the loader would build in another format than
// the file has, for every exclude entry that it would not match, and for whatever else it would
// refuse, each with the fix; findings of one cause are one finding that counts its tensors.
// The rules are those of the versions named in docs/loaders.md.
std::vector<model::Finding> check_for_loader(Loader loader, const base::json::value& config_json,
                                             const model::ModelConfig& config,
                                             const model::LoadPlan& plan,
                                             const tensor::Checkpoint& checkpoint);

}  // namespace ingot::quantize
