#include <cstdio>
#include <map>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"
#include "base/log.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/loader_report.h"
#include "cli/options.h"
#include "engine/model_text.h"
#include "kernels/ledger_json.h"
#include "model/end_of_sequence.h"
#include "model/inspection.h"
#include "model/kv_cache.h"
#include "quantize/quantization_report.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
using model::Finding;
using model::ModuleClass;
using model::ModuleSummary;
using model::Severity;

// Everything that inspect knows; checkpoint and plan only when weights are there.
struct Subject {
  std::string config_text;
  model::ModelConfig config;
  std::optional<tensor::Checkpoint> checkpoint;
  std::optional<model::LoadPlan> plan;
  model::Inspection inspection;
  std::optional<kernels::Ledger> ledger;
  std::optional<engine::ModelText> text;
  std::optional<quantize::QuantizationReport> quantization;
  std::optional<quantize::LoaderReport> loader;
};

// "753.33 B", "1.25 M"
std::string short_count(double number) {
  if (number >= 1e9) return fmt::format("{:.2f} B", number / 1e9);
  if (number >= 1e6) return fmt::format("{:.2f} M", number / 1e6);
  if (number >= 1e3) return fmt::format("{:.1f} k", number / 1e3);
  return fmt::format("{:.0f}", number);
}

// Decimal units for what is stored, as model pages give it.
std::string stored_bytes(uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  if (value >= 1e9) return fmt::format("{:.2f} GB", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} MB", value / 1e6);
  return fmt::format("{:.1f} kB", value / 1e3);
}

std::string formats_of(const ModuleSummary& module) {
  std::string text;
  for (const auto& [format, stored] : module.formats) {
    if (!text.empty()) text += ", ";
    text += module.formats.size() == 1 ? format
                                       : fmt::format("{} x{}", format, grouped(stored.parameters));
  }
  return text;
}

// What to know about figures that come from a config without weights.
void note_config_alone(const model::ModelConfig& config) {
  if (!config.quant_method.empty()) {
    base::log_info(
        fmt::format("config.json announces \"{}\" quantization, whose scale tensors are "
                    "not counted",
                    config.quant_method));
  }
  for (const std::string& key : config.unread_keys) {
    base::log_warning(fmt::format("config.json: \"{}\" is not read by Ingot", key));
  }
}

base::Result<Subject> open_subject(const InspectOptions& options) {
  Subject subject;
  const std::filesystem::path config_file = TRY(model::config_path(options.model.model));
  subject.config_text = TRY(model::read_config_text(options.model.model));
  subject.config = TRY(model::parse_model_config(
      TRY(base::parse_json(subject.config_text, config_file.string())), config_file.string()));
  if (config_file == options.model.model || !tensor::Checkpoint::exists(options.model.model)) {
    if (config_file != options.model.model) {
      base::log_info("no weights beside config.json; counting what it describes");
    }
    subject.inspection = model::inspect_config(subject.config);
    note_config_alone(subject.config);
    return subject;
  }
  subject.checkpoint = TRY(tensor::Checkpoint::open(options.model.model));
  subject.plan = TRY(model::plan_load(subject.config, *subject.checkpoint, {}));
  subject.inspection = model::inspect_plan(subject.config, *subject.plan);
  return subject;
}

// Adds what there is to say about tokenizer and template. A model without them runs on token ids.
base::Status open_text(Subject& subject, const std::filesystem::path& directory) {
  if (!subject.plan || !std::filesystem::exists(directory / "tokenizer.json")) return {};
  std::vector<Finding>& findings = subject.plan->findings;
  const std::vector<int64_t> further = TRY(model::further_end_of_sequence(
      directory, subject.config.eos_token_ids, subject.config.vocab_size));
  if (!further.empty()) {
    findings.push_back(
        {.severity = Severity::kWarning,
         .code = "end_of_sequence_differs",
         .subject = "generation_config.json",
         .message = fmt::format("also ends answers at {}, which config.json does not have",
                                fmt::join(further, ", ")),
         .remedy = "nothing to do; all of both end an answer"});
    std::ranges::copy(further, std::back_inserter(subject.config.eos_token_ids));
  }
  auto text = engine::ModelText::load(directory);
  if (!text) {
    findings.push_back({.severity = Severity::kError,
                        .code = "text_unreadable",
                        .subject = "text",
                        .message = text.error().message,
                        .remedy = "only commands that take token ids would run"});
    return {};
  }
  subject.text = std::move(*text);
  std::ranges::move(subject.text->compare_with(subject.config), std::back_inserter(findings));
  return {};
}

// Adds how the model was made, where `ingot quantize` left word of it. No loader reads that file,
// so that damage to it keeps nobody from loading the model.
void open_quantization(Subject& subject, const std::filesystem::path& directory) {
  if (!subject.plan) return;
  auto report = quantize::read_report(directory, subject.checkpoint->tensors().size());
  if (report) {
    subject.quantization = std::move(*report);
    return;
  }
  subject.plan->findings.push_back(
      {.severity = Severity::kWarning,
       .code = "report_unreadable",
       .subject = std::string(quantize::kManifestName),
       .message = report.error().message,
       .remedy = "remove the file, or quantize the model again to have it"});
}

// Adds a finding when a plan without errors has a use that no kernel of this build takes, and the
// ledger when it is wanted, with the MTP layer where there is one.
base::Status choose_kernels(Subject& subject, const CommonOptions& common,
                            const InspectOptions& options) {
  if (!subject.plan) {
    if (!options.kernels) return {};
    return base::error(
        "--kernels needs tensor headers, and only a config is here; name a directory with weights");
  }
  model::LoadPlan& plan = *subject.plan;
  if (!plan.check()) return {};
  engine::RunnerOptions executor = TRY(executor_options(common, options.model));
  executor.mtp = plan.has_mtp ? model::MtpChoice::kLoad : model::MtpChoice::kLeaveOut;
  const auto choices = engine::choose_kernels(subject.config, plan, executor);
  if (!choices) {
    plan.findings.push_back({.severity = Severity::kError,
                             .code = "no_kernel",
                             .subject = options.model.model.string(),
                             .message = choices.error().message,
                             .remedy = "choose other numeric options or another checkpoint"});
    return {};
  }
  if (!options.kernels) return {};
  subject.ledger = choices->ledger;
  return {};
}

// What another program would make of the checkpoint, when that was asked.
base::Status check_loader(Subject& subject, const InspectOptions& options) {
  if (options.loader.empty()) return {};
  if (!subject.plan) {
    return base::error(
        "--for needs tensor headers, and only a config is here; name a directory with weights");
  }
  const auto loader = quantize::find_loader(options.loader);
  CHECK(loader.has_value(), options.loader);
  subject.loader =
      quantize::check_for_loader(*loader, TRY(base::parse_json(subject.config_text, "config.json")),
                                 subject.config, *subject.plan, *subject.checkpoint);
  return {};
}

void print_overview(const Subject& subject, const std::filesystem::path& path) {
  const model::ModelConfig& c = subject.config;
  const model::Inspection& inspection = subject.inspection;
  const int64_t dense = std::min(c.first_k_dense_replace, c.num_hidden_layers);
  fmt::print("{}\n", path.string());
  fmt::print("  model       {}: {} layers ({} dense, {} MoE), {} experts, top {}, {} shared{}\n",
             name(c.family), c.num_hidden_layers, dense, c.num_hidden_layers - dense,
             c.n_routed_experts, c.num_experts_per_tok, c.n_shared_experts,
             c.num_nextn_predict_layers > 0 ? ", MTP layer" : "");
  fmt::print("  parameters  {} in {} tensors; {} active per token without the embedding table\n",
             grouped(inspection.parameters), grouped(inspection.tensors),
             short_count(inspection.active_parameters));
  if (subject.checkpoint) {
    fmt::print("  weights     {} in {} file{}, model hash {}\n",
               stored_bytes(subject.checkpoint->size_bytes()), subject.checkpoint->files().size(),
               subject.checkpoint->files().size() == 1 ? "" : "s",
               model::model_hash(subject.config_text, *subject.checkpoint));
  }
  if (c.synthetic_weights) {
    fmt::print("  note        random weights that `ingot synth` made, or quantized from such\n");
  }
  if (c.has_indexer()) {
    const auto full = std::ranges::count(c.indexer_types, model::IndexerType::kFull);
    fmt::print(
        "  context     {} positions; sparse attention to {} of them, {} layers select and {} "
        "share\n",
        grouped(c.max_position_embeddings), grouped(c.index_topk), full,
        c.num_hidden_layers - full);
  } else {
    fmt::print("  context     {} positions, dense attention\n", grouped(c.max_position_embeddings));
  }
  const auto cache =
      model::cache_bytes_per_token(c, kernels::CacheType::kBF16, model::CacheLayers::kMain);
  fmt::print("  cache       {} bytes per token in bf16: {} latents, {} index keys\n",
             grouped(cache.total()), grouped(cache.latents), grouped(cache.index_keys));
}

// What a request may set in templates; they have variables of their own besides.
constexpr std::string_view kSwitches[] = {"tools",    "documents",        "enable_thinking",
                                          "thinking", "reasoning_effort", "clear_thinking"};

void print_text_files(const Subject& subject) {
  if (!subject.plan) return;
  if (!subject.text) {
    fmt::print("  tokenizer   none that can be read; chat and --prompt need tokenizer.json\n");
    return;
  }
  const text::Tokenizer& tokenizer = subject.text->tokenizer;
  fmt::print("  tokenizer   byte-level BPE, {} ids, {} of them added tokens\n",
             grouped(tokenizer.vocabulary_size()), tokenizer.added_tokens().size());
  if (const auto& chat_template = subject.text->chat_template) {
    std::vector<std::string_view> switches;
    for (const std::string& name : chat_template->variables()) {
      if (std::ranges::find(kSwitches, name) != std::end(kSwitches)) switches.push_back(name);
    }
    fmt::print("  template    knows {}\n",
               switches.empty() ? "messages only" : fmt::format("{}", fmt::join(switches, ", ")));
  } else {
    fmt::print("  template    none; ingot chat needs one\n");
  }
}

void print_modules(const Subject& subject) {
  const bool stored = subject.plan.has_value();
  fmt::print("\n  {:<15} {:>9} {:>18} {:>12} {:>6}  {}\n", "module", "tensors", "parameters",
             "active", "", stored ? "stored as" : "");
  for (size_t i = 0; i < model::kModuleClasses; ++i) {
    const ModuleSummary& module = subject.inspection.modules[i];
    if (module.tensors == 0) continue;
    fmt::print(
        "  {:<15} {:>9} {:>18} {:>12} {:>6}  {}\n", name(static_cast<ModuleClass>(i)),
        grouped(module.tensors), grouped(module.parameters),
        module.active == 0 ? "-" : short_count(module.active), "",
        stored ? fmt::format("{:>10}  {}", stored_bytes(module.bytes), formats_of(module)) : "");
  }
}

// Which observation decided how many tensors' formats; scales are not counted.
void print_rules(const model::LoadPlan& plan) {
  std::map<std::pair<std::string_view, std::string_view>, int64_t> counts;
  for (const model::PlanRow& row : plan.rows) {
    ++counts[{name(row.stored.format), description(row.stored.rule)}];
  }
  fmt::print("\n  {:<12} {:>10}  {}\n", "format", "tensors", "decided by");
  for (const auto& [key, count] : counts) {
    fmt::print("  {:<12} {:>10}  {}\n", key.first, grouped(count), key.second);
  }
}

// Findings of one kind together: the first three whole, the rest counted.
void print_findings(const std::vector<Finding>& findings) {
  constexpr int kShown = 3;
  constexpr std::string_view kTitles[] = {"note", "warning", "ERROR"};
  if (findings.empty()) {
    fmt::print("\n  config.json and tensors fit together.\n");
    return;
  }
  fmt::print("\n");
  std::map<std::string_view, int> seen;
  for (const Finding& finding : findings) {
    if (++seen[finding.code] > kShown) continue;
    fmt::print("  {}: {}\n", kTitles[static_cast<size_t>(finding.severity)], finding.line());
  }
  for (const auto& [code, count] : seen) {
    if (count > kShown) fmt::print("  ... and {} more of {}\n", grouped(count - kShown), code);
  }
}

json::object modules_json(const model::Inspection& inspection) {
  json::object modules;
  for (size_t i = 0; i < model::kModuleClasses; ++i) {
    const ModuleSummary& module = inspection.modules[i];
    if (module.tensors == 0) continue;
    json::object formats;
    for (const auto& [format, stored] : module.formats) {
      formats[format] = json::object{{"count", stored.parameters}, {"bytes", stored.bytes}};
    }
    modules[name(static_cast<ModuleClass>(i))] = json::object{{"tensors", module.tensors},
                                                              {"parameters", module.parameters},
                                                              {"active_parameters", module.active},
                                                              {"formats", std::move(formats)},
                                                              {"bytes", module.bytes}};
  }
  return modules;
}

json::object text_json(const engine::ModelText& model_text) {
  json::object text{{"vocabulary_size", model_text.tokenizer.vocabulary_size()},
                    {"added_tokens", model_text.tokenizer.added_tokens().size()},
                    {"chat_template", nullptr}};
  if (model_text.chat_template) {
    const auto variables = model_text.chat_template->variables();
    text["chat_template"] =
        json::object{{"variables", json::array(variables.begin(), variables.end())}};
  }
  return text;
}

json::object quantization_json(const quantize::QuantizationReport& report) {
  json::array tensors;
  for (const quantize::TensorReport& tensor : report.tensors) tensors.push_back(to_json(tensor));
  return {{"recipe", report.recipe},
          {"dequant", report.dequantization},
          {"scale_search", report.scale_search},
          {"complete", report.complete},
          {"classes", quantize::classes_json(report)},
          {"tensors", std::move(tensors)}};
}

void print_json(const Subject& subject, int threads) {
  const model::ModelConfig& c = subject.config;
  base::ProvenanceInputs inputs{.threads = threads, .seed = {}};
  if (subject.checkpoint) {
    inputs.model_hash = model::model_hash(subject.config_text, *subject.checkpoint);
  }
  json::object document = base::result_document("inspect", inputs);
  document["model_type"] = name(c.family);
  document["tensors"] = subject.inspection.tensors;
  document["parameters"] = subject.inspection.parameters;
  document["active_parameters"] = subject.inspection.active_parameters;
  document["bytes"] = subject.inspection.bytes;
  document["synthetic_weights"] = c.synthetic_weights;
  const auto cache =
      model::cache_bytes_per_token(c, kernels::CacheType::kBF16, model::CacheLayers::kMain);
  document["cache_bytes_per_token_bf16"] =
      json::object{{"latents", cache.latents}, {"index_keys", cache.index_keys}};
  document["modules"] = modules_json(subject.inspection);
  json::array findings;
  json::array rows;
  if (subject.plan) {
    for (const Finding& finding : subject.plan->findings) findings.push_back(to_json(finding));
    for (const auto& row : subject.plan->rows) rows.push_back(to_json(row, *subject.checkpoint));
  }
  if (subject.text) document["text"] = text_json(*subject.text);
  if (subject.quantization) document["quantization"] = quantization_json(*subject.quantization);
  document["findings"] = std::move(findings);
  if (subject.loader) document["loader"] = to_json(*subject.loader);
  if (subject.ledger) document["kernels"] = to_json(*subject.ledger);
  document["rows"] = std::move(rows);
  fmt::print("{}", base::pretty_json(document));
}

}  // namespace

base::Result<int> inspect(const CommonOptions& common, const InspectOptions& options) {
  Subject subject = TRY(open_subject(options));
  TRY(choose_kernels(subject, common, options));
  TRY(open_text(subject, options.model.model));
  open_quantization(subject, options.model.model);
  TRY(check_loader(subject, options));
  const bool loads = (!subject.plan || subject.plan->check().has_value()) &&
                     (!subject.loader || subject.loader->loads_right());
  if (common.json) {
    print_json(subject, thread_count(common));
  } else {
    print_overview(subject, options.model.model);
    print_text_files(subject);
    print_modules(subject);
    if (subject.plan) print_rules(*subject.plan);
    if (subject.quantization) {
      fmt::print("\n  how it was made, by ingot quantize:\n{}", describe(*subject.quantization));
    }
    if (subject.plan) print_findings(subject.plan->findings);
    if (subject.ledger) fmt::print("\n{}", describe(*subject.ledger));
    if (subject.loader) print(*subject.loader);
  }
  return loads ? 0 : 1;
}

}  // namespace ingot::cli
