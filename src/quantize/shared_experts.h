#pragma once

#include <optional>
#include <string>
#include <vector>

#include "model/load_plan.h"
#include "model/model_config.h"
#include "quantize/loader_check.h"

namespace ingot::quantize {

// What a loader would do with shared experts, which it may fuse with the routed ones: as one expert
// more, in the routed ones' format. `apart` is the entry or key of the config for which it would
// not; `is_quark` whether the config is Quark's.
std::vector<model::Finding> check_shared_experts(Loader loader, const model::ModelConfig& config,
                                                 const model::LoadPlan& plan, bool is_quark,
                                                 const std::optional<std::string>& apart);

}  // namespace ingot::quantize
