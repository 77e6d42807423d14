#include "quantize/verdicts.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "model/inspection.h"
#include "quantize/loader_check.h"
#include "quantize/quark_config.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;
using model::Finding;

bool is_meant_for(const Recipe& recipe, std::string_view program) {
  return std::ranges::find(recipe.programs, program) != recipe.programs.end();
}

base::Result<std::vector<Verdict>> judge(const json::value& config_json, const std::string& source,
                                         const tensor::Checkpoint& checkpoint,
                                         const Recipe& recipe) {
  const model::ModelConfig config = TRY(model::parse_model_config(config_json, source));
  const model::LoadPlan plan = TRY(model::plan_load(config, checkpoint, {}));
  std::vector<Verdict> verdicts = {{.program = "ingot",
                                    .version = "ingot",
                                    .is_meant = is_meant_for(recipe, "ingot"),
                                    .loads = plan.count(model::Severity::kError) == 0,
                                    .findings = plan.findings}};
  for (const auto loader : {Loader::kSglang, Loader::kVllm}) {
    LoaderReport report = check_for_loader(loader, config_json, config, plan, checkpoint);
    const bool loads = report.loads_right();
    verdicts.push_back({.program = std::string(name(loader)),
                        .version = std::string(version(loader)),
                        .is_meant = is_meant_for(recipe, name(loader)),
                        .loads = loads,
                        .where = loads ? report.where() : "",
                        .findings = std::move(report.findings)});
  }
  for (Verdict& verdict : verdicts) {
    std::ranges::stable_sort(verdict.findings, std::ranges::greater{}, &Finding::severity);
  }
  return verdicts;
}

// The headers that the shards of a plan will have.
tensor::Checkpoint planned_checkpoint(const QuantizationPlan& plan) {
  std::vector<tensor::TensorInfo> tensors;
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& planned : shard.tensors) {
      for (const tensor::TensorSpec& spec : planned.outputs) {
        const auto elements = static_cast<uint64_t>(spec.shape.num_elements().value());
        tensors.push_back({.name = spec.name,
                           .dtype = spec.dtype,
                           .shape = spec.shape,
                           .size_bytes = elements * tensor::size_bytes(spec.dtype)});
      }
    }
  }
  return tensor::Checkpoint::of_headers(std::move(tensors));
}

}  // namespace

base::Status add_names_of_loaders(const json::value& source_config, QuantizationPlan& plan) {
  const json::value config_json = quark_config(source_config, plan);
  const auto config = TRY(model::parse_model_config(config_json, "config.json"));
  const tensor::Checkpoint checkpoint = planned_checkpoint(plan);
  const model::LoadPlan load_plan = TRY(model::plan_load(config, checkpoint, {}));
  for (const auto loader : {Loader::kSglang, Loader::kVllm}) {
    const LoaderReport report =
        check_for_loader(loader, config_json, config, load_plan, checkpoint);
    std::ranges::copy(report.exclude_to_add, std::back_inserter(plan.exclude));
  }
  std::ranges::sort(plan.exclude);
  const auto repeated = std::ranges::unique(plan.exclude);
  plan.exclude.erase(repeated.begin(), repeated.end());
  return {};
}

base::Result<std::vector<Verdict>> judge_plan(const json::value& source_config,
                                              const QuantizationPlan& plan) {
  return judge(quark_config(source_config, plan), "config.json", planned_checkpoint(plan),
               plan.recipe);
}

base::Result<std::vector<Verdict>> judge_directory(const std::filesystem::path& directory,
                                                   const Recipe& recipe) {
  const std::string source = (directory / "config.json").string();
  const json::value config_json =
      TRY(base::parse_json(TRY(model::read_config_text(directory)), source));
  const auto checkpoint = TRY(tensor::Checkpoint::open(directory));
  return judge(config_json, source, checkpoint, recipe);
}

bool all_meant_load(const std::vector<Verdict>& verdicts) {
  return std::ranges::all_of(
      verdicts, [](const Verdict& verdict) { return verdict.loads || !verdict.is_meant; });
}

json::object to_json(const std::vector<Verdict>& verdicts) {
  json::object programs;
  for (const Verdict& verdict : verdicts) {
    json::array findings;
    for (const Finding& finding : verdict.findings) findings.push_back(to_json(finding));
    programs[verdict.program] = json::object{{"version", verdict.version},
                                             {"meant", verdict.is_meant},
                                             {"loads", verdict.loads},
                                             {"findings", std::move(findings)}};
  }
  return programs;
}

std::string describe(const std::vector<Verdict>& verdicts, std::string_view more) {
  constexpr size_t kShown = 3;
  constexpr std::string_view kTitles[] = {"note", "warning", "ERROR"};
  std::string text;
  for (const Verdict& verdict : verdicts) {
    text += fmt::format("  {} {}{}{}\n", verdict.version,
                        verdict.loads ? "loads every tensor in the format that the file has"
                                      : "would not load it right",
                        verdict.where, verdict.is_meant ? "" : "; the recipe is not meant for it");
    for (size_t i = 0; i < std::min(kShown, verdict.findings.size()); ++i) {
      const Finding& finding = verdict.findings[i];
      text += fmt::format("    {}: {}\n", kTitles[static_cast<size_t>(finding.severity)],
                          finding.line());
    }
    if (verdict.findings.size() <= kShown) continue;
    std::string where(more);
    // The last: the name of a directory may have one as well. Ingot needs no --for.
    constexpr std::string_view kFor = " --for {}";
    if (const size_t at = where.rfind(kFor); at != std::string::npos) {
      const bool is_ours = verdict.program == "ingot";
      where.replace(at, kFor.size(), is_ours ? "" : " --for " + verdict.program);
    }
    text += fmt::format("    ... and {} more; {}\n", verdict.findings.size() - kShown, where);
  }
  return text;
}

}  // namespace ingot::quantize
