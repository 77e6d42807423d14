#include "quantize/quark_rules.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>

#include <fmt/format.h>

namespace ingot::quantize {
namespace {

namespace json = base::json;
using model::Family;
using model::Finding;
using model::Severity;

Finding config_error(std::string key, std::string message, std::string remedy) {
  return {.severity = Severity::kError,
          .code = "loader_config",
          .subject = "quantization_config." + std::move(key),
          .message = std::move(message),
          .remedy = std::move(remedy)};
}

// The text with the first `from` in it replaced.
std::string replace_first(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

// Where sglang since 30265 builds a module of GLM's MTP layer that is published as `name`.
std::string glm_draft_name(const std::string& name, const std::string& layer) {
  constexpr std::array<std::string_view, 4> kOutside = {"shared_head.norm", "eh_proj", "enorm",
                                                        "hnorm"};
  const bool outside =
      std::ranges::any_of(kOutside, [&](std::string_view part) { return name.contains(part); });
  return replace_first(name, layer, outside ? "model" : "model.decoder");
}

// The layer that DeepSeek's drafts replace in every name, whatever the model's depth.
constexpr std::string_view kDeepseekDraftLayer = "model.layers.61";
constexpr std::string_view kDraftLayer = "model.decoder";

// The problem of entries that describe single experts of a layer: they hold for the layer when all
// say the same and none is left out. `prefix` ends with a dot.
std::string single_experts_problem(const std::vector<const LayerConfig*>& entries,
                                   std::string_view prefix) {
  std::map<uint64_t, std::set<std::string_view>> projections;
  for (const LayerConfig* entry : entries) {
    const std::string_view suffix = std::string_view(entry->pattern).substr(prefix.size());
    uint64_t expert = 0;
    const auto [end, failure] =
        std::from_chars(suffix.data(), suffix.data() + suffix.size(), expert);
    const std::string_view rest = suffix.substr(static_cast<size_t>(end - suffix.data()));
    if (failure != std::errc{} || rest.size() < 2 || rest[0] != '.') {
      return fmt::format("the entry {:?} is of no expert's projection", entry->pattern);
    }
    projections[expert].insert(rest.substr(1));
    if (*entry->config != *entries.front()->config) {
      return fmt::format("the entries {:?} and {:?} differ", entries.front()->pattern,
                         entry->pattern);
    }
  }
  for (const auto& [expert, names] : projections) {
    if (names != projections.begin()->second) {
      return fmt::format("experts {} and {} have entries for different projections",
                         projections.begin()->first, expert);
    }
  }
  if (projections.rbegin()->first + 1 != projections.size()) {
    return "experts below the highest one that has an entry have none";
  }
  return "";
}

}  // namespace

QuarkRules::QuarkRules(Loader loader, const json::object& quantization,
                       const model::ModelConfig& config, std::vector<Finding>& findings)
    : loader_(loader),
      family_(config.family),
      num_layers_(config.num_hidden_layers),
      num_draft_layers_(config.num_nextn_predict_layers) {
  read_export(quantization, findings);
  if (!read_lists(quantization, findings)) return;
  main_ = main_tables();
  if (loader_ != Loader::kVllm) draft_ = draft_tables();
}

void QuarkRules::read_export(const json::object& quantization, std::vector<Finding>& findings) {
  const std::string_view program = version(loader_);
  const json::value* exported = quantization.if_contains("export");
  const json::value* groups = exported != nullptr && exported->is_object()
                                  ? exported->get_object().if_contains("kv_cache_group")
                                  : nullptr;
  if (groups == nullptr || !groups->is_array()) {
    findings.push_back(config_error(
        "export", fmt::format("{} needs it with a list \"kv_cache_group\" and stops", program),
        R"(write "export": {"kv_cache_group": [], "pack_method": "reorder"})"));
  } else if (!groups->get_array().empty()) {
    findings.push_back(config_error("export.kv_cache_group",
                                    "not checked: a quantized cache changes other entries",
                                    "check without it, or leave it empty"));
  }
  for (const std::string_view key : {"layer_type_quant_config", "kv_cache_quant_config"}) {
    const json::value* value = quantization.if_contains(key);
    const bool is_needed = key == "layer_type_quant_config";
    if (value == nullptr || value->is_null()) {
      if (!is_needed) continue;
      findings.push_back(config_error(std::string(key),
                                      fmt::format("{} needs it and stops", program),
                                      fmt::format(R"(write "{}": {{}})", key)));
    } else if (!value->is_object() || !value->get_object().empty()) {
      findings.push_back(config_error(std::string(key), "not checked: only an empty one is known",
                                      "describe layers by name in layer_quant_config"));
    }
  }
}

bool QuarkRules::read_lists(const json::object& quantization, std::vector<Finding>& findings) {
  const std::string_view program = version(loader_);
  const size_t num_before = findings.size();
  global_ = quantization.if_contains("global_quant_config");
  if (global_ == nullptr || !global_->is_object()) {
    findings.push_back(config_error("global_quant_config",
                                    fmt::format("{} needs it and stops", program),
                                    "write the entry that Quark writes for MXFP4"));
  }
  const json::value* exclude = quantization.if_contains("exclude");
  const bool may_lack = loader_ != Loader::kVllm && exclude == nullptr;
  const bool is_list =
      exclude != nullptr && exclude->is_array() &&
      std::ranges::all_of(exclude->get_array(), [](const json::value& e) { return e.is_string(); });
  if (!may_lack && !is_list) {
    findings.push_back(config_error(
        "exclude", fmt::format("{} needs a list of strings and stops", program),
        R"(write "exclude": [], or the names of the modules that are stored unquantized)"));
  } else if (is_list) {
    for (const json::value& entry : exclude->get_array()) {
      exclude_.emplace_back(entry.get_string());
    }
  }
  const json::value* layers = quantization.if_contains("layer_quant_config");
  const bool is_absent = layers == nullptr || layers->is_null();
  if (is_absent ? loader_ != Loader::kVllm : !layers->is_object()) {
    findings.push_back(config_error("layer_quant_config",
                                    fmt::format("{} needs an object and stops", program),
                                    R"(write "layer_quant_config": {})"));
  } else if (!is_absent) {
    for (const auto& [pattern, entry] : layers->get_object()) {
      layer_configs_.push_back({std::string(pattern), &entry});
    }
  }
  return findings.size() == num_before;
}

QuarkRules::Tables QuarkRules::main_tables() {
  std::vector<ExcludeEntry> entries;
  for (size_t i = 0; i < exclude_.size(); ++i) entries.push_back({exclude_[i], i});
  return {.exclude = ExcludeEntries(std::move(entries), *budget_),
          .layers = LayerConfigs(loader_, layer_configs_, *budget_)};
}

// sglang's draft model has names of its own, and its class renames entries to match them.
QuarkRules::Tables QuarkRules::draft_tables() {
  if (family_ == Family::kGlm4MoeLite) return main_tables();
  const bool is_old = loader_ == Loader::kSglangBefore30265;
  const bool knows_glm = family_ == Family::kGlmMoeDsa && !is_old;
  const std::string layer = fmt::format("model.layers.{}", num_layers_);
  const auto renamed = [&](const std::string& name) {
    return knows_glm ? name : replace_first(name, kDeepseekDraftLayer, kDraftLayer);
  };
  std::vector<ExcludeEntry> entries;
  for (size_t i = 0; i < exclude_.size(); ++i) {
    constexpr std::string_view kLanguage = "language_model.";
    const std::string name = renamed(exclude_[i]);
    entries.push_back({name, i});
    if (name.starts_with(kLanguage)) entries.push_back({name.substr(kLanguage.size()), i});
  }
  for (size_t i = 0, count = knows_glm ? entries.size() : 0; i < count; ++i) {
    const ExcludeEntry entry = entries[i];
    if (!entry.text.starts_with(layer + ".")) continue;
    entries.push_back({glm_draft_name(entry.text, layer), entry.origin});
    if (entry.text.contains(".mlp.experts.")) {
      entries.push_back({"model.decoder.mlp.experts", entry.origin});
    }
  }
  std::vector<LayerConfig> layers = layer_configs_;
  for (LayerConfig& entry : layers) {
    if (is_old) break;
    if (!knows_glm) {
      entry.pattern = renamed(entry.pattern);
    } else if (entry.pattern.starts_with(layer + ".")) {
      entry.pattern = glm_draft_name(entry.pattern, layer);
    }
  }
  Tables tables{.exclude = ExcludeEntries(std::move(entries), *budget_),
                .layers = LayerConfigs(loader_, std::move(layers), *budget_)};
  if (!knows_glm) tables.is_unquantized = tables.exclude.find(renamed(layer)) != nullptr;
  return tables;
}

const ExcludeEntry* QuarkRules::find_excluding(Tables& tables, const LoaderModule& module,
                                               std::string& conflict) const {
  const bool is_old = loader_ == Loader::kSglangBefore30265;
  const bool is_fused = !module.shards.empty();
  if (!is_fused || !is_old) {
    const ExcludeEntry* direct = tables.exclude.find(module.name);
    if (direct != nullptr) return direct;
  }
  if (module.kind == ModuleKind::kExperts && !is_old) {
    return tables.exclude.find_below(module.name);
  }
  if (!is_fused) return nullptr;
  const ExcludeEntry* first = nullptr;
  size_t num_excluded = 0;
  for (const std::string& shard : module.shards) {
    const ExcludeEntry* entry = tables.exclude.find(shard);
    if (entry == nullptr) continue;
    ++num_excluded;
    if (first == nullptr) first = entry;
  }
  if (num_excluded != 0 && num_excluded != module.shards.size()) {
    conflict =
        fmt::format("the exclude entry {:?} covers a part of {} only", first->text, module.name);
  }
  return first;
}

const json::value& QuarkRules::config_of(const Tables& tables, std::string_view name,
                                         std::string* pattern) const {
  const LayerConfig* entry = tables.layers.find(name);
  if (entry == nullptr) return *global_;
  if (pattern != nullptr) *pattern = entry->pattern;
  return *entry->config;
}

Decision QuarkRules::described(const Tables& tables, const LoaderModule& module) const {
  std::string pattern;
  const auto refused = [&](std::string why) {
    return Decision{
        {BuiltFormat::kRefused, std::move(why)}, Decider::kConfig, "layer_quant_config"};
  };
  const std::string& first = module.shards.empty() ? module.name : module.shards.front();
  const json::value* config = &config_of(tables, first, &pattern);
  for (const std::string& shard : module.shards) {
    if (config_of(tables, shard, nullptr) != *config) {
      return refused(fmt::format("the parts of {} have different entries", module.name));
    }
  }
  if (module.kind == ModuleKind::kExperts && pattern.empty() && loader_ == Loader::kSglang) {
    const auto entries = tables.layers.below(module.name);
    if (!entries.empty()) {
      std::string problem = single_experts_problem(entries, module.name + ".");
      if (!problem.empty()) return refused(std::move(problem));
      config = entries.front()->config;
      pattern = entries.front()->pattern;
    }
  }
  return {quark_scheme(loader_, *config, module.kind), Decider::kConfig,
          pattern.empty() ? "global_quant_config"
                          : fmt::format("the layer_quant_config entry {:?}", pattern)};
}

Decision QuarkRules::decide(const LoaderModule& module) {
  Tables& tables = module.is_draft && draft_ ? *draft_ : *main_;
  if (module.is_draft && tables.is_unquantized) {
    return {scheme(BuiltFormat::kUnquantized), Decider::kExcluded, "an entry for the whole layer"};
  }
  std::string conflict;
  const ExcludeEntry* entry = find_excluding(tables, module, conflict);
  if (!conflict.empty()) {
    return {{BuiltFormat::kRefused, conflict}, Decider::kExcluded, "exclude"};
  }
  if (entry != nullptr) {
    return {scheme(BuiltFormat::kUnquantized), Decider::kExcluded,
            fmt::format("the exclude entry {:?}", exclude_[entry->origin])};
  }
  return described(tables, module);
}

std::vector<std::string> QuarkRules::entries_that_exclude(const LoaderModule& module) const {
  const bool renames = loader_ == Loader::kSglang && family_ == Family::kGlmMoeDsa;
  const bool as_published = !module.is_draft || loader_ == Loader::kVllm || renames;
  if (as_published) return module.published;
  return module.shards.empty() ? std::vector{module.name} : module.shards;
}

std::vector<bool> QuarkRules::used_origins() const {
  std::vector<bool> used(exclude_.size());
  for (const auto* tables : {&main_, &draft_}) {
    if (!*tables) continue;
    const auto& entries = (*tables)->exclude.entries();
    for (size_t i = 0; i < entries.size(); ++i) {
      if ((*tables)->exclude.is_used(i)) used[entries[i].origin] = true;
    }
  }
  return used;
}

std::vector<ExcludeEntries::Problem> QuarkRules::problems() const {
  std::vector<ExcludeEntries::Problem> problems;
  std::set<size_t> seen;
  for (const auto* tables : {&main_, &draft_}) {
    if (!*tables) continue;
    for (const auto& problem : (*tables)->exclude.problems()) {
      if (seen.insert(problem.origin).second) problems.push_back(problem);
    }
  }
  return problems;
}

bool QuarkRules::is_draft_entry(std::string_view entry) const {
  if (entry.starts_with("mtp.")) return true;
  for (int64_t i = 0; i < num_draft_layers_; ++i) {
    if (entry.starts_with(fmt::format("model.layers.{}.", num_layers_ + i))) return true;
  }
  return false;
}

std::optional<std::string> QuarkRules::what_keeps_shared_experts_apart() {
  if (loader_ != Loader::kSglang) return std::nullopt;
  for (const std::string& entry : exclude_) {
    if (entry.contains("shared_expert") && !entry.contains("shared_expert_gate") &&
        !is_draft_entry(entry)) {
      return fmt::format("the exclude entry {:?}", entry);
    }
  }
  // It compares entries at layer 0 and the draft's, whether or not experts are there.
  const bool plural = std::ranges::any_of(main_->layers.configs(), [](const LayerConfig& entry) {
    return entry.pattern.contains(".shared_experts.");
  });
  const std::string shared = plural ? "shared_experts" : "shared_expert";
  if (main_->layers.empty()) return std::nullopt;
  for (const char* base : {"model.layers.0", "model.language_model.layers.0", "model.decoder"}) {
    const std::string routed = fmt::format("{}.mlp.experts", base);
    const auto single = main_->layers.below(routed);
    const json::value& expected = main_->layers.find(routed) == nullptr && !single.empty()
                                      ? *single.front()->config
                                      : config_of(*main_, routed, nullptr);
    for (const char* projection : {"gate_proj", "up_proj", "down_proj"}) {
      const std::string name = fmt::format("{}.mlp.{}.{}", base, shared, projection);
      if (config_of(*main_, name, nullptr) != expected) {
        return "layer_quant_config, whose entries differ for routed and shared experts";
      }
    }
  }
  return std::nullopt;
}

}  // namespace ingot::quantize
