#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/provenance.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "model/inspection.h"
#include "quantize/loader_check.h"
#include "quantize/quantization_manifest.h"
#include "quantize/quantizer.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
namespace fs = std::filesystem;
using quantize::QuantizationPlan;

constexpr int kInterrupted = 130;  // as shells report a program that Ctrl-C ended

// A model that is to be quantized, and what is to become of it.
struct Subject {
  json::value config_json;
  std::string config_text;
  model::ModelConfig config;
  std::optional<tensor::Checkpoint> checkpoint;
  std::optional<QuantizationPlan> plan;
};

base::Result<Subject> open_subject(const QuantizeOptions& options) {
  Subject subject;
  const fs::path config_file = TRY(model::config_path(options.source));
  if (config_file == options.source) {
    return base::error("{}: a config alone has no weights; name the model's directory",
                       options.source.string());
  }
  subject.config_text = TRY(model::read_config_text(options.source));
  subject.config_json = TRY(base::parse_json(subject.config_text, config_file.string()));
  subject.config = TRY(model::parse_model_config(subject.config_json, config_file.string()));
  subject.checkpoint = TRY(tensor::Checkpoint::open(options.source));
  quantize::Recipe recipe = TRY(quantize::load_recipe(
      options.recipe.empty() ? std::string(quantize::default_recipe(subject.config.family))
                             : options.recipe));
  const model::LoadPlan load_plan = TRY(model::plan_load(subject.config, *subject.checkpoint, {}));
  subject.plan = TRY(quantize::plan_quantization(subject.config, load_plan, *subject.checkpoint,
                                                 std::move(recipe)));
  return subject;
}

// Before hours of work, and so that a slip never replaces another file.
base::Status check_report_path(const fs::path& path) {
  if (path.empty()) return {};
  if (path.extension() != ".json") {
    return base::error("--report {}: the name of a report ends in .json", path.string());
  }
  std::error_code ignored;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (fs::is_directory(parent, ignored)) return {};
  return base::error("--report {}: its directory is not there", path.string());
}

json::array plan_json(const QuantizationPlan& plan) {
  json::array rows;
  for (const quantize::PlannedShard& shard : plan.shards) {
    for (const quantize::PlannedTensor& tensor : shard.tensors) {
      json::array outputs;
      for (const tensor::TensorSpec& spec : tensor.outputs) {
        const auto extents = spec.shape.extents();
        outputs.push_back(json::object{{"name", spec.name},
                                       {"dtype", tensor::name(spec.dtype)},
                                       {"shape", json::array(extents.begin(), extents.end())}});
      }
      rows.push_back(json::object{{"name", tensor.parameter.name},
                                  {"module", name(tensor.parameter.module_class)},
                                  {"treatment", name(tensor.treatment)},
                                  {"rule", tensor.rule},
                                  {"file", shard.file_name},
                                  {"source_bytes", tensor.source.size_bytes()},
                                  {"output_bytes", tensor.output_bytes},
                                  {"outputs", std::move(outputs)}});
    }
  }
  return rows;
}

void print_dry_run(const CommonOptions& common, const Subject& subject) {
  const QuantizationPlan& plan = *subject.plan;
  if (!common.json) {
    fmt::print("{}", describe(plan));
    return;
  }
  json::object document = base::result_document(
      "quantization_plan",
      {.model_hash = model::model_hash(subject.config_text, *subject.checkpoint),
       .threads = thread_count(common),
       .seed = {}});
  document["recipe"] = plan.recipe.name;
  document["source_bytes"] = plan.source_bytes;
  document["output_bytes"] = plan.output_bytes;
  document["exclude"] = json::array(plan.exclude.begin(), plan.exclude.end());
  document["tensors"] = plan_json(plan);
  fmt::print("{}", base::pretty_json(document));
}

// What a program that loads the result will make of it.
struct Verdict {
  std::string loader;
  bool loads = false;
  std::vector<model::Finding> findings;
};

base::Result<std::vector<Verdict>> judge(const fs::path& directory) {
  const std::string text = TRY(model::read_config_text(directory));
  const std::string source = (directory / "config.json").string();
  const json::value config_json = TRY(base::parse_json(text, source));
  const model::ModelConfig config = TRY(model::parse_model_config(config_json, source));
  const auto checkpoint = TRY(tensor::Checkpoint::open(directory));
  const model::LoadPlan plan = TRY(model::plan_load(config, checkpoint, {}));
  std::vector<Verdict> verdicts = {{.loader = "ingot",
                                    .loads = plan.count(model::Severity::kError) == 0,
                                    .findings = plan.findings}};
  for (const auto loader : {quantize::Loader::kSglang, quantize::Loader::kVllm}) {
    quantize::LoaderReport report =
        quantize::check_for_loader(loader, config_json, config, plan, checkpoint);
    verdicts.push_back({.loader = std::string(version(loader)),
                        .loads = report.loads_right(),
                        .findings = std::move(report.findings)});
  }
  return verdicts;
}

void print_verdicts(const std::vector<Verdict>& verdicts) {
  constexpr size_t kShown = 3;
  constexpr std::string_view kTitles[] = {"note", "warning", "ERROR"};
  fmt::print("\n");
  for (const Verdict& verdict : verdicts) {
    fmt::print("  {} {}\n", verdict.loader,
               verdict.loads ? "loads every tensor in the format that the file has"
                             : "would not load it right");
    for (size_t i = 0; i < verdict.findings.size() && i < kShown; ++i) {
      const model::Finding& finding = verdict.findings[i];
      fmt::print("    {}: {}\n", kTitles[static_cast<size_t>(finding.severity)], finding.line());
    }
    if (verdict.findings.size() > kShown) {
      fmt::print("    ... and {} more; see ingot inspect\n", verdict.findings.size() - kShown);
    }
  }
}

// The manifest that the run left, with the verdicts.
base::Result<std::string> report_document(const fs::path& directory,
                                          const std::vector<Verdict>& verdicts) {
  const fs::path path = directory / quantize::kManifestName;
  json::value document = TRY(base::parse_json(
      TRY(base::read_text_file(path, quantize::kManifestBytesMax)), path.string()));
  json::object loaders;
  for (const Verdict& verdict : verdicts) {
    json::array findings;
    for (const model::Finding& finding : verdict.findings) findings.push_back(to_json(finding));
    loaders[verdict.loader] =
        json::object{{"loads", verdict.loads}, {"findings", std::move(findings)}};
  }
  document.as_object()["loaders"] = std::move(loaders);
  return base::pretty_json(document);
}

quantize::QuantizerOptions quantizer_options(const QuantizeOptions& options,
                                             kernels::Target target) {
  return {.dequantization = options.dequantization == "bf16" ? quantize::Dequantization::kBF16
                                                             : quantize::Dequantization::kF32,
          .scale_search = options.scale_search == "mse" ? kernels::ScaleSearch::kSquaredError
                                                        : kernels::ScaleSearch::kEven,
          .memory_bytes = options.memory_bytes,
          .target = target,
          .interrupted = InterruptGuard::pressed};
}

}  // namespace

base::Result<int> quantize(const CommonOptions& common, const QuantizeOptions& options) {
  const kernels::Target target = TRY(kernels::usable_target(common.targets));
  TRY(check_report_path(options.report));
  const Subject subject = TRY(open_subject(options));
  if (options.dry_run) {
    print_dry_run(common, subject);
    return 0;
  }
  if (!common.json) {
    fmt::print("{}\n", describe(*subject.plan));
    std::fflush(stdout);
  }
  const base::SystemClock clock;
  const auto team = TRY(base::ThreadTeam::create(thread_count(common)));
  std::optional<InterruptGuard> guard(std::in_place);
  const auto report =
      quantize::quantize(*subject.checkpoint, subject.config_json, *subject.plan, options.source,
                         options.destination, quantizer_options(options, target), *team, clock);
  if (!report && InterruptGuard::pressed()) {
    std::fprintf(stderr,
                 "ingot: interrupted; the same command goes on after the last whole file\n");
    return kInterrupted;
  }
  if (!report) return std::unexpected(report.error());
  guard.reset();
  const std::vector<Verdict> verdicts = TRY(judge(options.destination));
  const std::string document = TRY(report_document(options.destination, verdicts));
  if (!options.report.empty()) TRY(base::write_text_file(options.report, document));
  if (common.json) {
    fmt::print("{}", document);
  } else {
    fmt::print("{}", describe(*report));
    print_verdicts(verdicts);
  }
  return std::ranges::all_of(verdicts, &Verdict::loads) ? 0 : 1;
}

}  // namespace ingot::cli
