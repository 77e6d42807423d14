#include "model/inspection.h"

#include "model/family.h"
#include "model/weights.h"

namespace ingot::model {
namespace {

// Share of a parameter that one token uses.
double active_share(const ModelConfig& config, const Parameter& parameter) {
  switch (parameter.module_class) {
    case ModuleClass::kEmbedding:
    case ModuleClass::kMtp:
      return 0;
    case ModuleClass::kRoutedExperts:
      return static_cast<double>(config.num_experts_per_tok) /
             static_cast<double>(config.n_routed_experts);
    default:
      return 1;
  }
}

class Counter {
 public:
  explicit Counter(const ModelConfig& config) : config_(config) {}

  ModuleSummary& count(const Parameter& parameter, int64_t tensors) {
    ModuleSummary& module = inspection_.modules[static_cast<size_t>(parameter.module_class)];
    const int64_t numbers = parameter.shape.num_elements().value();
    const double active = static_cast<double>(numbers) * active_share(config_, parameter);
    module.tensors += tensors;
    module.parameters += numbers;
    module.active += active;
    inspection_.tensors += tensors;
    inspection_.parameters += numbers;
    inspection_.active_parameters += active;
    return module;
  }

  void count_stored(const PlanRow& row) {
    ModuleSummary& module = count(row.parameter, row.stored.scales == nullptr ? 1 : 2);
    const uint64_t bytes = row.stored.size_bytes();
    ModuleSummary::Stored& stored = module.formats[std::string(name(row.stored.format))];
    ++stored.parameters;
    stored.bytes += bytes;
    module.bytes += bytes;
    inspection_.bytes += bytes;
  }

  const Inspection& result() const { return inspection_; }

 private:
  const ModelConfig& config_;
  Inspection inspection_;
};

}  // namespace

Inspection inspect_config(const ModelConfig& config) {
  Counter counter(config);
  const bool copies = traits(config.family).mtp_repeats_embeddings;
  for (const Parameter& parameter : list_parameters(config)) {
    if (!parameter.optional || copies) counter.count(parameter, 1);
  }
  return counter.result();
}

Inspection inspect_plan(const ModelConfig& config, const LoadPlan& plan) {
  Counter counter(config);
  for (const PlanRow& row : plan.rows) counter.count_stored(row);
  return counter.result();
}

std::string runtime_format(const PlanRow& row) {
  if (row.parameter.optional) return "not loaded";
  return std::string(name(held_format(row)));
}

base::json::object to_json(const PlanRow& row, const tensor::Checkpoint& checkpoint) {
  base::json::object object;
  object["name"] = row.stored.data->name;
  object["module"] = row.parameter.module();
  object["class"] = name(row.parameter.module_class);
  if (row.parameter.layer >= 0) object["layer"] = row.parameter.layer;
  base::json::array shape;
  for (const int64_t extent : row.parameter.shape.extents()) shape.emplace_back(extent);
  object["shape"] = std::move(shape);
  object["format"] = name(row.stored.format);
  object["rule"] = description(row.stored.rule);
  if (row.stored.scales != nullptr) object["scales"] = row.stored.scales->name;
  object["runtime_format"] = runtime_format(row);
  object["partition"] = name(row.parameter.partition);
  object["bytes"] = row.stored.size_bytes();
  object["file"] = checkpoint.path_of(*row.stored.data).filename().string();
  return object;
}

base::json::object to_json(const Finding& finding) {
  constexpr std::string_view kSeverities[] = {"note", "warning", "error"};
  base::json::object object;
  object["severity"] = kSeverities[static_cast<size_t>(finding.severity)];
  object["code"] = finding.code;
  object["subject"] = finding.subject;
  object["message"] = finding.message;
  object["remedy"] = finding.remedy;
  return object;
}

}  // namespace ingot::model
