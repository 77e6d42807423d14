#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "quantize/loader_check.h"
#include "quantize/python_pattern.h"

namespace ingot::quantize {

// An entry of quantization_config.layer_quant_config under the name that a loader matches.
struct LayerConfig {
  std::string pattern;
  const base::json::value* config;
};

// layer_quant_config as a loader looks names up in it: the first entry in order that matches. To
// sglang a pattern is one of fnmatch. To vLLM one without a star matches when the name stands
// anywhere in it.
class LayerConfigs {
 public:
  // Keeps a pointer to `budget`.
  LayerConfigs(Loader loader, std::vector<LayerConfig> configs, MatchBudget& budget);

  const LayerConfig* find(std::string_view name) const;
  // Entries of modules inside this one: they begin with the name and a dot.
  std::vector<const LayerConfig*> below(std::string_view name) const;

  bool empty() const { return configs_.empty(); }
  const std::vector<LayerConfig>& configs() const { return configs_; }

 private:
  bool is_pattern(std::string_view text) const;

  Loader loader_;
  std::vector<LayerConfig> configs_;
  std::unordered_map<std::string_view, size_t> exact_;  // the first of each name
  std::vector<size_t> patterns_;
  std::vector<size_t> sorted_;  // all by text
  // Exact names for vLLM that hold "model." somewhere inside, where a name may begin.
  std::vector<size_t> nested_;
  MatchBudget* budget_;
};

}  // namespace ingot::quantize
