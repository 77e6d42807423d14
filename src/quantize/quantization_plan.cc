#include "quantize/quantization_plan.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/check.h"
#include "quantize/fused_experts.h"
#include "quantize/recipe_matcher.h"

namespace ingot::quantize {
namespace {

using kernels::WeightFormat;
using model::Parameter;
using model::PlanRow;
using tensor::DType;
using tensor::TensorSpec;

constexpr int64_t kMxfp4BlockSize = 32;

uint64_t size_bytes(const TensorSpec& spec) {
  return static_cast<uint64_t>(spec.shape.num_elements().value()) * tensor::size_bytes(spec.dtype);
}

// Why a parameter that no recipe is asked about is kept.
std::string_view reason_to_keep(const Parameter& parameter) {
  return parameter.shape.rank() == 2 ? "an embedding" : "a vector";
}

// What Quark puts on the list: by name and rank, so that copies of embeddings stay off it.
bool is_excluded(const PlannedTensor& tensor) {
  const std::string_view module = tensor.parameter.module();
  return tensor.treatment == Treatment::kKeep && tensor.parameter.shape.rank() == 2 &&
         tensor.parameter.name.ends_with(".weight") && !module.contains("embed") &&
         !module.ends_with("norm");
}

base::Result<std::vector<TensorSpec>> outputs_of(const PlanRow& row, Treatment treatment) {
  const Parameter& parameter = row.parameter;
  const std::string module(parameter.module());
  if (treatment == Treatment::kKeep) {
    if (row.stored.scales != nullptr) {
      return std::vector<TensorSpec>{{parameter.name, DType::kBF16, parameter.shape}};
    }
    const tensor::TensorInfo& source = *row.stored.data;
    return std::vector<TensorSpec>{{source.name, source.dtype, source.shape}};
  }
  const int64_t rows = parameter.shape[0];
  const int64_t cols = parameter.shape[1];
  if (treatment == Treatment::kMxfp4) {
    if (cols % 2 != 0) {
      return base::error("{}: {} columns, and MXFP4 packs two values into a byte; keep it",
                         parameter.name, cols);
    }
    const int64_t blocks = (cols + kMxfp4BlockSize - 1) / kMxfp4BlockSize;
    return std::vector<TensorSpec>{{module + ".weight", DType::kU8, {rows, cols / 2}},
                                   {module + ".weight_scale", DType::kU8, {rows, blocks}}};
  }
  if (rows * cols % 4 != 0) {
    return base::error(
        "{}: {} values in FP8, and the f32 scales behind them must lie at a multiple of 4 bytes; "
        "keep it",
        parameter.name, rows * cols);
  }
  return std::vector<TensorSpec>{{module + ".weight", DType::kF8E4M3, {rows, cols}},
                                 {module + ".weight_scale", DType::kF32, {rows}}};
}

// The safetensors library writes wide elements first so that all are aligned.
int write_order(const PlannedTensor& tensor) {
  switch (tensor.outputs.front().dtype) {
    case DType::kF32:
      return 0;
    case DType::kF8E4M3:  // with F32 scales
      return 1;
    case DType::kBF16:
      return 2;
    case DType::kF16:
      return 3;
    case DType::kU8:
      return 4;
    default:
      CHECK(false, tensor.parameter.name);
      return 5;
  }
}

// Decides what becomes of each row of a load plan.
class Planner {
 public:
  Planner(const model::ModelConfig& config, const model::LoadPlan& load_plan,
          const tensor::Checkpoint& checkpoint, const Recipe& recipe)
      : load_plan_(load_plan),
        checkpoint_(checkpoint),
        recipe_name_(recipe.name),
        matcher_(recipe, config.num_hidden_layers) {}

  // All of a plan but its recipe.
  base::Result<QuantizationPlan> build() {
    TRY(decide());
    TRY(check_experts());
    std::map<uint32_t, PlannedShard> shards;
    for (size_t i = 0; i < load_plan_.rows.size(); ++i) {
      const PlanRow& row = load_plan_.rows[i];
      std::vector<TensorSpec> outputs = TRY(outputs_of(row, decisions_[i].treatment));
      PlannedTensor tensor = {.parameter = row.parameter,
                              .source = row.stored,
                              .treatment = decisions_[i].treatment,
                              .rule = decisions_[i].rule,
                              .outputs = std::move(outputs)};
      for (const TensorSpec& output : tensor.outputs) tensor.output_bytes += size_bytes(output);
      if (is_excluded(tensor)) plan_.exclude.emplace_back(tensor.parameter.module());
      add(shards[row.stored.data->file], std::move(tensor));
    }
    for (auto& [file, shard] : shards) {
      shard.file_name = checkpoint_.files()[file].path().filename().string();
      std::ranges::sort(shard.tensors, {}, [](const PlannedTensor& tensor) {
        return std::tuple(write_order(tensor), std::string_view(tensor.outputs.front().name));
      });
      plan_.shards.push_back(std::move(shard));
    }
    std::ranges::sort(plan_.exclude);
    return std::move(plan_);
  }

 private:
  struct Decision {
    Treatment treatment = Treatment::kKeep;
    std::string rule;
  };

  base::Status decide() {
    std::vector<std::string> modules;
    const Parameter* undecided = nullptr;
    for (const PlanRow& row : load_plan_.rows) {
      const Parameter& parameter = row.parameter;
      if (!parameter.is_linear()) {
        decisions_.push_back({.rule = std::string(reason_to_keep(parameter))});
        continue;
      }
      if (row.stored.format == WeightFormat::kMxfp4) {
        return base::error(
            "{}: stored as MXFP4 already; quantize the bf16 or FP8 release of this model",
            parameter.name);
      }
      modules.emplace_back(parameter.module());
      const RecipeRule* rule = matcher_.decide(modules.back());
      if (rule == nullptr && undecided == nullptr) undecided = &parameter;
      decisions_.push_back(rule == nullptr ? Decision{} : Decision{rule->treatment, rule->pattern});
    }
    // First: a misspelt rule is what leaves modules undecided.
    TRY(matcher_.check_every_rule_decided(modules));
    if (undecided != nullptr) {
      return base::error(
          "{}: no rule of recipe {} says what becomes of it; add one (a last rule with pattern "
          "\"*\" decides all that is left)",
          undecided->module(), recipe_name_);
    }
    return {};
  }

  // Kernels and loaders take the routed experts of a layer as one.
  base::Status check_experts() const {
    std::map<int32_t, size_t> first_rows;
    for (size_t i = 0; i < load_plan_.rows.size(); ++i) {
      const Parameter& parameter = load_plan_.rows[i].parameter;
      if (parameter.expert < 0) continue;
      const size_t first = first_rows.emplace(parameter.layer, i).first->second;
      if (decisions_[first].treatment == decisions_[i].treatment) continue;
      return base::error(
          "recipe {}: {} is {} by \"{}\", while {} is {} by \"{}\"; treat the routed experts of a "
          "layer alike",
          recipe_name_, parameter.module(), name(decisions_[i].treatment), decisions_[i].rule,
          load_plan_.rows[first].parameter.module(), name(decisions_[first].treatment),
          decisions_[first].rule);
    }
    return {};
  }

  void add(PlannedShard& shard, PlannedTensor tensor) {
    const uint64_t source_bytes = tensor.source.size_bytes();
    plan_.source_bytes += source_bytes;
    plan_.output_bytes += tensor.output_bytes;
    shard.source_bytes += source_bytes;
    shard.output_bytes += tensor.output_bytes;
    shard.tensors.push_back(std::move(tensor));
  }

  const model::LoadPlan& load_plan_;
  const tensor::Checkpoint& checkpoint_;
  std::string recipe_name_;
  RecipeMatcher matcher_;
  std::vector<Decision> decisions_;  // one a row
  QuantizationPlan plan_;
};

}  // namespace

base::Result<QuantizationPlan> plan_quantization(const model::ModelConfig& config,
                                                 const model::LoadPlan& load_plan,
                                                 const tensor::Checkpoint& checkpoint,
                                                 Recipe recipe) {
  // Before the load plan's own errors, which would call them missing and unclaimed.
  TRY(refuse_fused_experts(config, checkpoint));
  TRY(load_plan.check());
  QuantizationPlan plan = TRY(Planner(config, load_plan, checkpoint, recipe).build());
  plan.recipe = std::move(recipe);
  return plan;
}

}  // namespace ingot::quantize
