#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/json.h"
#include "model/load_plan.h"
#include "model/model_config.h"
#include "model/parameters.h"

namespace ingot::model {

// What one class of modules amounts to.
struct ModuleSummary {
  struct Stored {
    int64_t parameters = 0;  // how many parameter tensors
    uint64_t bytes = 0;      // scales included
  };
  int64_t tensors = 0;                    // scale tensors included
  int64_t parameters = 0;                 // single numbers, scales not counted
  double active = 0;                      // of them, used for one token
  std::map<std::string, Stored> formats;  // by name; empty when only a config is known
  uint64_t bytes = 0;
};

// A model counted. From a config alone it describes the published bf16 files of the family.
struct Inspection {
  std::array<ModuleSummary, kModuleClasses> modules;  // by ModuleClass
  int64_t tensors = 0;
  int64_t parameters = 0;
  double active_parameters = 0;  // a token, main layers, without the embedding table
  uint64_t bytes = 0;            // 0 from a config alone

  const ModuleSummary& of(ModuleClass module_class) const {
    return modules[static_cast<size_t>(module_class)];
  }
};

Inspection inspect_config(const ModelConfig& config);
Inspection inspect_plan(const ModelConfig& config, const LoadPlan& plan);

// One row of the plan, as `ingot inspect --json` prints it.
base::json::object to_json(const PlanRow& row, const tensor::Checkpoint& checkpoint);
base::json::object to_json(const Finding& finding);

// In what format a parameter is held when the model runs; "not loaded" for the MTP layer's copies
// of embedding and head. The rest of that layer is loaded only when drafts are asked for.
std::string runtime_format(const PlanRow& row);

}  // namespace ingot::model
