#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "base/json.h"
#include "model/model_config.h"
#include "quantize/loader_decision.h"

namespace ingot::quantize {

// A quantization_config with `quant_method` "fp8", as the FP8 releases of GLM and DeepSeek have it,
// as a loader reads it: everything is FP8 in blocks but what modules_to_not_convert names. sglang
// takes an entry for every module whose dotted name contains it; vLLM wants the exact name.
class Fp8Rules {
 public:
  // Findings: what the loader needs and does not find, or does not run.
  Fp8Rules(Loader loader, const base::json::object& quantization, const model::ModelConfig& config,
           std::vector<model::Finding>& findings);

  Decision decide(const LoaderModule& module) const;

  const std::vector<std::string>& unconverted() const { return unconverted_; }

 private:
  // The entry that leaves a name unquantized; null when none does.
  const std::string* find(const std::string& name) const;
  const std::string* find_for_experts(const std::string& name) const;

  Loader loader_;
  model::Family family_;
  std::vector<std::string> unconverted_;
  std::unordered_set<std::string> names_;    // as the loader holds them
  std::vector<std::string> expert_entries_;  // those that name something in experts
};

}  // namespace ingot::quantize
