#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/load_plan.h"
#include "model/model_config.h"
#include "quantize/loader_check.h"

namespace ingot::quantize {

// What a loader builds a module as, before anything is said of formats.
enum class ModuleKind : uint8_t {
  kLinear,
  kExperts,  // all routed experts of a layer, one module
  // The indexer's wk. Where a loader fuses it with weights_proj it is held in bf16 and FP8 is
  // decoded on the way; sglang does so on CUDA and builds a linear layer on ROCm.
  kIndexerKey,
  kNeverQuantized,  // held unquantized whatever the config says
};

// A module as a loader builds it, with the parameters of the file that fill it.
struct LoaderModule {
  ModuleKind kind = ModuleKind::kLinear;
  bool is_draft = false;  // of the MTP layer, which is a model of its own to the loaders
  std::string name;       // under which the loader looks it up: "model.decoder.mlp.gate_up_proj"
  std::vector<std::string> shards;  // a fused module's parts under the same prefix; else empty
  // What the file calls it: the parts of a fused module, "model.layers.3.mlp.experts", or the one.
  std::vector<std::string> published;
  std::vector<const model::PlanRow*> rows;
};

// Whether the projection at the head of the MTP layer is quantized like any linear layer.
enum class MtpProjection : uint8_t { kLinear, kNeverQuantized };

// Every module with a matrix that the loader fills from the rows of the plan, main layers first as
// in the plan. Keeps pointers into the plan.
std::vector<LoaderModule> loader_modules(Loader loader, const model::ModelConfig& config,
                                         const model::LoadPlan& plan, MtpProjection projection);

}  // namespace ingot::quantize
