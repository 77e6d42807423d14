#include "quantize/loader_modules.h"

#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::quantize {
namespace {

using model::Role;

// Where a parameter goes, under the prefix of its layer.
struct Place {
  ModuleKind kind = ModuleKind::kLinear;
  std::string module;  // "self_attn.fused_qkv_a_proj_with_mqa"
  std::string shard;   // "self_attn.q_a_proj" when fused
};

std::string_view qkv_name(Loader loader) {
  return loader == Loader::kVllm ? "self_attn.fused_qkv_a_proj"
                                 : "self_attn.fused_qkv_a_proj_with_mqa";
}

// `name` is the parameter's module without the prefix of its layer. None: the loader skips it.
std::optional<Place> place_of(Loader loader, Role role, std::string_view name,
                              MtpProjection projection) {
  using enum ModuleKind;
  const std::string module(name);
  switch (role) {
    case Role::kQA:
    case Role::kKvA:
      return Place{kLinear, std::string(qkv_name(loader)), module};
    case Role::kDenseGate:
    case Role::kDenseUp:
      return Place{kLinear, "mlp.gate_up_proj", module};
    case Role::kSharedGate:
    case Role::kSharedUp:
      return Place{kLinear, "mlp.shared_experts.gate_up_proj", module};
    case Role::kExpertGate:
    case Role::kExpertUp:
    case Role::kExpertDown:
      return Place{kExperts, "mlp.experts", ""};
    case Role::kIndexK:
      return Place{kIndexerKey, module, ""};
    case Role::kRouter:
    case Role::kIndexGates:
    case Role::kLmHead:
      return Place{kNeverQuantized, module, ""};
    case Role::kMtpHeadCopy:
      if (loader != Loader::kVllm) return std::nullopt;
      return Place{kNeverQuantized, module, ""};
    case Role::kMtpProjection:
      return Place{projection == MtpProjection::kLinear ? kLinear : kNeverQuantized, module, ""};
    default:
      return Place{kLinear, module, ""};
  }
}

// The names of layers: as published, and as the loader looks modules up.
struct Prefixes {
  std::string published;
  std::string runtime;
};

Prefixes prefixes_of(Loader loader, const model::Parameter& parameter, bool is_draft) {
  if (parameter.layer < 0) return {};
  const std::string published = fmt::format("model.layers.{}.", parameter.layer);
  if (!is_draft || loader == Loader::kVllm) return {published, published};
  return {published, parameter.role == Role::kMtpProjection ? "model." : "model.decoder."};
}

}  // namespace

std::vector<LoaderModule> loader_modules(Loader loader, const model::ModelConfig& config,
                                         const model::LoadPlan& plan, MtpProjection projection) {
  std::vector<LoaderModule> modules;
  std::unordered_map<std::string, size_t> index;
  for (const model::PlanRow& row : plan.rows) {
    const model::Parameter& parameter = row.parameter;
    if (!parameter.is_linear()) continue;
    const bool is_draft = parameter.layer >= config.num_hidden_layers;
    const Prefixes prefixes = prefixes_of(loader, parameter, is_draft);
    const std::string_view full = parameter.module();
    CHECK(full.starts_with(prefixes.published), full);
    const auto place =
        place_of(loader, parameter.role, full.substr(prefixes.published.size()), projection);
    if (!place) continue;
    const std::string name = prefixes.runtime + place->module;
    const auto [found, is_new] = index.emplace(name, modules.size());
    if (is_new) modules.push_back({place->kind, is_draft, name, {}, {}, {}});
    LoaderModule& module = modules[found->second];
    if (!place->shard.empty()) module.shards.push_back(prefixes.runtime + place->shard);
    if (place->kind != ModuleKind::kExperts) {
      module.published.emplace_back(full);
    } else if (is_new) {
      module.published.push_back(prefixes.published + place->module);
    }
    module.rows.push_back(&row);
  }
  return modules;
}

}  // namespace ingot::quantize
