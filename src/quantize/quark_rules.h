#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "model/model_config.h"
#include "quantize/exclude_entries.h"
#include "quantize/layer_configs.h"
#include "quantize/loader_decision.h"

namespace ingot::quantize {

// A quantization_config with `quant_method` "quark" as a loader reads it: which modules it leaves
// unquantized, and what it builds the others as.
class QuarkRules {
 public:
  // Keeps pointers into `quantization`. Findings: keys that the loader needs and does not find, and
  // forms that are not known here; after an error among them, `decide` must not be asked.
  QuarkRules(Loader loader, const base::json::object& quantization,
             const model::ModelConfig& config, std::vector<model::Finding>& findings);

  Decision decide(const LoaderModule& module);

  // The exclude entries that would leave the module unquantized, one or one for each of its parts.
  std::vector<std::string> entries_that_exclude(const LoaderModule& module) const;

  // Whether any of the loader's models found the entry of this place in the file's list.
  bool is_used(size_t origin) const { return used_origins().at(origin); }
  std::vector<bool> used_origins() const;
  // Matching took more steps than are reasonable, and what `decide` said since is not to be
  // trusted.
  bool is_exhausted() const { return budget_->steps_left == 0; }
  // What is wrong with expressions of the list, each once.
  std::vector<ExcludeEntries::Problem> problems() const;
  const std::vector<std::string>& exclude() const { return exclude_; }

  // Whether the main model holds shared experts apart from routed ones because of what the config
  // says: the entry or key that makes it. For sglang, which else fuses the two.
  std::optional<std::string> what_keeps_shared_experts_apart();

 private:
  // What a model, main or draft, looks modules up in.
  struct Tables {
    ExcludeEntries exclude;
    LayerConfigs layers;
    bool is_unquantized = false;  // the whole model
  };

  bool read_lists(const base::json::object& quantization, std::vector<model::Finding>& findings);
  void read_export(const base::json::object& quantization, std::vector<model::Finding>& findings);
  Tables main_tables();
  Tables draft_tables();
  const ExcludeEntry* find_excluding(Tables& tables, const LoaderModule& module,
                                     std::string& conflict) const;
  // The entry that describes a name; the global one when no other does.
  const base::json::value& config_of(const Tables& tables, std::string_view name,
                                     std::string* pattern) const;
  Decision described(const Tables& tables, const LoaderModule& module) const;
  bool is_draft_entry(std::string_view entry) const;

  Loader loader_;
  model::Family family_;
  int64_t num_layers_;
  int64_t num_draft_layers_;
  std::unique_ptr<MatchBudget> budget_ = std::make_unique<MatchBudget>();
  std::vector<std::string> exclude_;
  std::vector<LayerConfig> layer_configs_;
  const base::json::value* global_ = nullptr;
  std::optional<Tables> main_;
  std::optional<Tables> draft_;  // of sglang; vLLM looks both up in one
};

}  // namespace ingot::quantize
