#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "quantize/destination.h"
#include "quantize/quantization_manifest.h"
#include "quantize/quantizer.h"
#include "quantize/verdicts.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
namespace fs = std::filesystem;
using quantize::QuantizationPlan;
using quantize::Verdict;

constexpr int kInterrupted = 130;  // as shells report a program that Ctrl-C ended

// A model that is to be quantized, and what is to become of it.
struct Subject {
  json::value config_json;
  std::string config_text;
  model::ModelConfig config;
  std::optional<tensor::Checkpoint> checkpoint;
  std::optional<QuantizationPlan> plan;
};

// inspect takes a config alone; here the weights are wanted.
base::Status check_source(const fs::path& source) {
  constexpr std::string_view kExpected =
      "SOURCE is a model's directory: config.json and its safetensors files";
  std::error_code ignored;
  if (!fs::exists(source, ignored)) {
    return base::error("{}: not there; {}", source.string(), kExpected);
  }
  if (!fs::is_directory(source, ignored)) {
    return base::error("{}: no directory; {}", source.string(), kExpected);
  }
  for (const std::string_view name : {std::string_view("config.json"), quantize::kManifestName}) {
    if (fs::exists(source / name, ignored)) return {};
  }
  return base::error("{}: no config.json in it; {}", source.string(), kExpected);
}

base::Result<Subject> open_subject(const QuantizeOptions& options) {
  Subject subject;
  TRY(check_source(options.source));
  const fs::path config_file = TRY(model::config_path(options.source));
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
  TRY(quantize::add_names_of_loaders(subject.config_json, *subject.plan));
  return subject;
}

// Whether a file is a report that an earlier run wrote.
bool is_report(const fs::path& path) {
  const auto text = base::read_text_file(path, quantize::kManifestBytesMax);
  if (!text) return false;
  const auto document = base::parse_json(*text, path.string());
  const json::object* object = document ? document->if_object() : nullptr;
  const json::value* schema = object == nullptr ? nullptr : object->if_contains("schema");
  return schema != nullptr && schema->is_string() &&
         std::string_view(schema->get_string()).starts_with("ingot.quantization/");
}

// Before hours of work, and once more when the report is written: it takes no place but its own.
base::Status check_report_path(const QuantizeOptions& options) {
  const fs::path& path = options.report;
  if (path.empty()) return {};
  const std::string shown = path.string();
  if (path.extension() != ".json") {
    return base::error("--report {}: the name of a report ends in .json", shown);
  }
  std::error_code ignored;
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (!fs::is_directory(parent, ignored)) {
    return base::error("--report {}: its directory is not there", shown);
  }
  for (const fs::path& model : {options.source, options.destination}) {
    if (model.empty() || !quantize::lies_in(parent, model)) continue;
    return base::error("--report {}: lies in {}; name a place outside of both models", shown,
                       model.string());
  }
  const fs::file_status status = fs::symlink_status(path, ignored);
  if (!fs::exists(status) || (fs::is_regular_file(status) && is_report(path))) return {};
  return base::error("--report {}: something else is there; remove it or name another file", shown);
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

std::string describe(const quantize::Outlook& outlook, const QuantizationPlan& plan) {
  if (outlook.is_complete) return "complete already; nothing would be written";
  std::string text;
  if (outlook.is_taken_up) {
    text = fmt::format("an interrupted run of this, {} of {} files finished; ",
                       outlook.num_finished_shards, plan.shards.size());
  }
  return text + fmt::format("{} would be written at most, and {} are free",
                            base::format_bytes(outlook.bytes_to_write_max),
                            base::format_bytes(outlook.free_bytes));
}

// `outlook` is there when a destination was named.
void print_dry_run(const CommonOptions& common, const QuantizeOptions& options,
                   const Subject& subject, const std::vector<Verdict>& verdicts,
                   const std::optional<quantize::Outlook>& outlook) {
  const QuantizationPlan& plan = *subject.plan;
  if (!common.json) {
    fmt::print("{}\n{}", describe(plan), describe(verdicts, "--json has them all"));
    if (outlook) fmt::print("\n  {}: {}\n", options.destination.string(), describe(*outlook, plan));
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
  document["loaders"] = to_json(verdicts);
  if (outlook) {
    document["destination"] =
        json::object{{"is_interrupted_run", outlook->is_taken_up && !outlook->is_complete},
                     {"is_complete", outlook->is_complete},
                     {"num_finished_files", outlook->num_finished_shards},
                     {"bytes_to_write_max", outlook->bytes_to_write_max},
                     {"free_bytes", outlook->free_bytes}};
  }
  document["tensors"] = plan_json(plan);
  fmt::print("{}", base::pretty_json(document));
}

// Before hours of work for files that somebody cannot use.
void warn_of_loaders(const std::vector<Verdict>& verdicts) {
  for (const Verdict& verdict : verdicts) {
    if (verdict.loads || !verdict.is_meant) continue;
    base::log_warning(fmt::format(
        "{} would not load the result right: {}; --dry-run shows more", verdict.version,
        verdict.findings.empty() ? "it cannot be checked" : verdict.findings.front().line()));
  }
}

// The manifest that the run left, with what follows from it. Text is added to text, since the tree
// of a large manifest takes several times its size.
base::Result<std::string> report_document(const fs::path& directory,
                                          const quantize::QuantizationReport& report,
                                          const std::vector<Verdict>& verdicts) {
  std::string text =
      TRY(base::read_text_file(directory / quantize::kManifestName, quantize::kManifestBytesMax));
  const std::string members = base::compact_json(
      json::object{{"classes", quantize::classes_json(report)}, {"loaders", to_json(verdicts)}});
  text.resize(text.find_last_not_of("\n ", text.rfind('}') - 1) + 1);
  text += ",\n";
  text.append(members, 1);
  return text + "\n";
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
  if (options.destination.empty() && !options.dry_run) {
    return base::error("DESTINATION is missing; only --dry-run goes without");
  }
  TRY(check_report_path(options));
  const Subject subject = TRY(open_subject(options));
  std::vector<Verdict> verdicts = TRY(quantize::judge_plan(subject.config_json, *subject.plan));
  quantize::QuantizerOptions quantizer = quantizer_options(options, target);
  const base::SystemClock clock;
  const auto team = TRY(base::ThreadTeam::create(thread_count(common)));
  if (options.dry_run) {
    std::optional<quantize::Outlook> outlook;
    if (!options.destination.empty()) {
      outlook = TRY(quantize::look_ahead(*subject.checkpoint, *subject.plan, options.source,
                                         options.destination, quantizer, *team, clock));
    }
    print_dry_run(common, options, subject, verdicts, outlook);
    return all_meant_load(verdicts) ? 0 : 1;
  }
  quantizer.begins = [&] {
    if (!common.json) fmt::print("{}\n", describe(*subject.plan));
    std::fflush(stdout);
    warn_of_loaders(verdicts);
  };
  std::optional<InterruptGuard> guard(std::in_place);
  const auto report =
      TRY(quantize::quantize(*subject.checkpoint, subject.config_json, *subject.plan,
                             options.source, options.destination, quantizer, *team, clock));
  guard.reset();
  if (!report.complete) {
    std::fprintf(stderr,
                 "ingot: interrupted; the same command goes on after the last whole file\n");
    return kInterrupted;
  }
  verdicts = TRY(quantize::judge_directory(options.destination, subject.plan->recipe));
  if (common.json || !options.report.empty()) {
    const std::string document = TRY(report_document(options.destination, report, verdicts));
    TRY(check_report_path(options));
    if (!options.report.empty()) TRY(base::write_text_file(options.report, document));
    if (common.json) fmt::print("{}", document);
  }
  if (!common.json) {
    const std::string more =
        fmt::format("ingot inspect {} --for {{}} shows all", options.destination.string());
    fmt::print("{}\n{}", describe(report), describe(verdicts, more));
  }
  return all_meant_load(verdicts) ? 0 : 1;
}

}  // namespace ingot::cli
