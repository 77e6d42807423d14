#include "quantize/shared_experts.h"

#include <map>

#include <fmt/format.h>

namespace ingot::quantize {
namespace {

using model::Finding;
using model::ModuleClass;
using model::PlanRow;
using model::Severity;

// A shared expert of the main layers that is stored in another format than the routed experts of
// its layer.
struct Difference {
  const PlanRow* shared = nullptr;
  const PlanRow* routed = nullptr;
  int64_t num_layers = 0;
};

Difference find_difference(const model::LoadPlan& plan) {
  std::map<int32_t, const PlanRow*> routed;
  std::map<int32_t, const PlanRow*> differing;
  for (const PlanRow& row : plan.rows) {
    if (row.parameter.module_class == ModuleClass::kRoutedExperts) {
      routed.emplace(row.parameter.layer, &row);
    }
  }
  for (const PlanRow& row : plan.rows) {
    if (row.parameter.module_class != ModuleClass::kSharedExperts) continue;
    const auto found = routed.find(row.parameter.layer);
    if (found == routed.end() || found->second->stored.format == row.stored.format) continue;
    differing.emplace(row.parameter.layer, &row);
  }
  if (differing.empty()) return {};
  return {differing.begin()->second, routed.at(differing.begin()->first),
          static_cast<int64_t>(differing.size())};
}

// Models for which sglang fuses shared experts where the hardware allows.
bool is_fused_by_sglang(const model::ModelConfig& config, bool is_quark) {
  if (config.n_shared_experts != 1) return false;
  if (config.family == model::Family::kGlm4MoeLite) return true;
  return config.n_routed_experts == 256 || (config.n_routed_experts == 384 && is_quark);
}

}  // namespace

std::vector<Finding> check_shared_experts(Loader loader, const model::ModelConfig& config,
                                          const model::LoadPlan& plan, bool is_quark,
                                          const std::optional<std::string>& apart) {
  const Difference difference = find_difference(plan);
  const bool may_fuse = is_fused_by_sglang(config, is_quark);
  if (difference.shared == nullptr) {
    if (loader == Loader::kVllm || !apart || !may_fuse) return {};
    return {{.severity = Severity::kWarning,
             .code = "shared_experts_apart",
             .subject = "shared experts",
             .message = fmt::format("stored in the routed experts' format, and {} does not fuse "
                                    "them with these because of {}, so kernels tuned for the fused "
                                    "shape are not used",
                                    version(loader), *apart),
             .remedy = "take it out of the config, or write it so that it names the MTP layer as "
                       "the file does"}};
  }
  Finding finding{
      .severity = Severity::kWarning,
      .code = "shared_experts_apart",
      .subject = std::string(difference.shared->parameter.module()),
      .message = fmt::format(
          "in {} layers shared experts are {} and routed experts {}, so {}", difference.num_layers,
          name(difference.shared->stored.format), name(difference.routed->stored.format),
          loader == Loader::kVllm ? "vLLM cannot fuse them"
                                  : "shared-expert fusion is off and kernels tuned for the fused "
                                    "shape are not used"),
      .remedy = loader == Loader::kVllm
                    ? "leave VLLM_ROCM_USE_AITER_FUSION_SHARED_EXPERTS unset"
                    : "start with --disable-shared-experts-fusion to say so, or store both alike"};
  if (loader == Loader::kVllm) {
    finding.severity = Severity::kNote;
  } else if (may_fuse && (!apart || config.family == model::Family::kGlm4MoeLite)) {
    finding.severity = Severity::kError;
    finding.code = "shared_experts_fused";
    finding.message = fmt::format(
        "in {} layers shared experts are {} and routed experts {}, and "
        "{} would fuse them in the routed ones' format",
        difference.num_layers, name(difference.shared->stored.format),
        name(difference.routed->stored.format), version(loader));
    finding.remedy = "start with --disable-shared-experts-fusion";
  }
  return {std::move(finding)};
}

}  // namespace ingot::quantize
