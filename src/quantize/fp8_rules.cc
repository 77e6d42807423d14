#include "quantize/fp8_rules.h"

#include <algorithm>

#include <fmt/format.h>

namespace ingot::quantize {
namespace {

namespace json = base::json;
using model::Finding;
using model::Severity;

bool has(const json::object& object, std::string_view key, const json::value& expected) {
  const json::value* value = object.if_contains(key);
  return value != nullptr && *value == expected;
}

Finding config_error(std::string_view key, std::string message, std::string remedy) {
  return {.severity = Severity::kError,
          .code = "loader_config",
          .subject = fmt::format("quantization_config.{}", key),
          .message = std::move(message),
          .remedy = std::move(remedy)};
}

// Every way to start and end at a dot: sglang asks whether an entry is such a part of a name.
template <typename Visit>
const std::string* first_part(std::string_view name, const Visit& visit) {
  for (size_t begin = 0; begin != std::string_view::npos;) {
    for (size_t end = name.find('.', begin);; end = name.find('.', end + 1)) {
      if (const std::string* found = visit(std::string(name.substr(begin, end - begin)))) {
        return found;
      }
      if (end == std::string_view::npos) break;
    }
    begin = name.find('.', begin);
    if (begin != std::string_view::npos) ++begin;
  }
  return nullptr;
}

}  // namespace

Fp8Rules::Fp8Rules(Loader loader, const json::object& quantization,
                   const model::ModelConfig& config, std::vector<Finding>& findings)
    : loader_(loader), family_(config.family) {
  const std::string_view program = version(loader);
  if (!has(quantization, "activation_scheme", "dynamic")) {
    findings.push_back(config_error(
        "activation_scheme", fmt::format("{} runs FP8 in blocks with \"dynamic\" only", program),
        R"(write "activation_scheme": "dynamic")"));
  }
  if (!has(quantization, "weight_block_size", json::array{128, 128})) {
    findings.push_back(config_error(
        "weight_block_size",
        fmt::format("{} would expect one scale for a whole tensor, not blocks", program),
        R"(write "weight_block_size": [128, 128] where the file has such blocks)"));
  }
  // The first of these keys that is there and not empty.
  for (const std::string_view key : {"ignored_layers", "modules_to_not_convert"}) {
    const json::value* list = quantization.if_contains(key);
    if (list == nullptr || list->is_null() || !unconverted_.empty()) continue;
    const bool is_list =
        list->is_array() &&
        std::ranges::all_of(list->get_array(), [](const json::value& e) { return e.is_string(); });
    if (!is_list) {
      findings.push_back(config_error(key, "is no list of strings", "write names of modules"));
      continue;
    }
    for (const json::value& entry : list->get_array()) {
      unconverted_.emplace_back(entry.get_string());
    }
  }
  const auto hold = [&](std::string entry) {
    if (entry.contains("experts")) expert_entries_.push_back(entry);
    names_.insert(std::move(entry));
  };
  for (const std::string& entry : unconverted_) {
    constexpr std::string_view kModel = "model.";
    const std::string bare = entry.starts_with(kModel) ? entry.substr(kModel.size()) : entry;
    hold(loader_ == Loader::kVllm ? entry : bare);
    if (loader_ != Loader::kVllm) hold(std::string(kModel) + bare);
  }
}

const std::string* Fp8Rules::find(const std::string& name) const {
  const auto exact = [&](const std::string& part) -> const std::string* {
    const auto found = names_.find(part);
    return found == names_.end() ? nullptr : &*found;
  };
  return loader_ == Loader::kVllm ? exact(name) : first_part(name, exact);
}

// An entry for anything inside the experts is one for all of them.
const std::string* Fp8Rules::find_for_experts(const std::string& name) const {
  const auto found = std::ranges::find_if(
      expert_entries_, [&](const std::string& entry) { return entry.contains(name); });
  return found == expert_entries_.end() ? nullptr : &*found;
}

Decision Fp8Rules::decide(const LoaderModule& module) const {
  const bool is_vllm = loader_ == Loader::kVllm;
  const bool is_qkv = module.name.contains("fused_qkv_a_proj");
  // sglang's class for GLM-4.7-Flash does not say what this module is made of.
  const bool knows_parts =
      !module.shards.empty() && (is_vllm || !is_qkv || family_ != model::Family::kGlm4MoeLite);
  const std::string* entry = nullptr;
  if (is_vllm)
    entry = knows_parts || !module.name.contains("experts") ? find(module.name) : nullptr;
  if (!knows_parts) {
    if (!is_vllm) entry = find(module.name);
    if (entry == nullptr && module.name.contains("experts")) entry = find_for_experts(module.name);
  } else if (entry == nullptr) {
    size_t num_excluded = 0;
    for (const std::string& shard : module.shards) {
      const std::string* found = find(shard);
      if (found == nullptr) continue;
      ++num_excluded;
      if (entry == nullptr) entry = found;
    }
    if (num_excluded != 0 && num_excluded != module.shards.size()) {
      return {{BuiltFormat::kRefused,
               fmt::format("the entry {:?} covers a part of {} only", *entry, module.name)},
              Decider::kExcluded,
              "modules_to_not_convert"};
    }
  }
  if (entry == nullptr) {
    return {scheme(BuiltFormat::kFp8Block), Decider::kConfig, "\"quant_method\": \"fp8\""};
  }
  return {scheme(BuiltFormat::kUnquantized), Decider::kExcluded,
          fmt::format("the entry {:?} of modules_to_not_convert", *entry)};
}

}  // namespace ingot::quantize
