#include "quantize/loader_check.h"

#include <algorithm>
#include <array>
#include <unordered_set>

#include <fmt/format.h>

#include "base/check.h"
#include "quantize/fp8_rules.h"
#include "quantize/loader_findings.h"
#include "quantize/loader_modules.h"
#include "quantize/module_comparison.h"
#include "quantize/quark_rules.h"
#include "quantize/shared_experts.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;
using model::Finding;
using model::Severity;

struct LoaderNames {
  Loader loader;
  std::string_view name;
  std::string_view version;
};

constexpr std::array<LoaderNames, 3> kLoaders = {{
    {Loader::kSglang, "sglang", "sglang 0.5.23"},
    {Loader::kSglangBefore30265, "sglang-0.5.13", "sglang 0.5.13.post1"},
    {Loader::kVllm, "vllm", "vLLM 0.33.0"},
}};

// What a check is made of, and the report that it fills.
struct Subject {
  Loader loader;
  const model::ModelConfig& config;
  const model::LoadPlan& plan;
  LoaderReport& report;

  void find(Severity severity, std::string code, std::string subject, std::string message,
            std::string remedy) const {
    report.findings.push_back(
        {severity, std::move(code), std::move(subject), std::move(message), std::move(remedy)});
  }
  void append(std::vector<Finding> findings) const {
    std::ranges::move(findings, std::back_inserter(report.findings));
  }
};

size_t num_errors(const LoaderReport& report) {
  return static_cast<size_t>(
      std::ranges::count(report.findings, Severity::kError, &Finding::severity));
}

// The architecture by which loaders choose the class of a model.
std::string_view architecture_of(model::Family family) {
  switch (family) {
    case model::Family::kGlmMoeDsa:
      return "GlmMoeDsaForCausalLM";
    case model::Family::kGlm4MoeLite:
      return "Glm4MoeLiteForCausalLM";
    case model::Family::kDeepseekV3:
      return "DeepseekV3ForCausalLM";
    case model::Family::kDeepseekV32:
      return "DeepseekV32ForCausalLM";
  }
  return "";
}

void check_architecture(const Subject& subject, const json::object& config_json) {
  const std::string_view expected = architecture_of(subject.config.family);
  const json::value* value = config_json.if_contains("architectures");
  if (value != nullptr && *value == json::value(json::array{expected})) return;
  subject.find(Severity::kError, "loader_architecture", "architectures",
               value == nullptr ? "config.json has none, and loaders choose their code by it"
                                : "another than that of this model_type, whose rules are not known",
               fmt::format(R"(write "architectures": ["{}"])", expected));
}

// Names in the file that no loader reads, and what Ingot itself could not place.
void check_names(const Subject& subject, const tensor::Checkpoint& checkpoint) {
  constexpr std::string_view kExporters = ".weight_quantizer.scale";
  std::string first;
  int64_t count = 0;
  for (const tensor::TensorInfo& info : checkpoint.tensors()) {
    if (!std::string_view(info.name).ends_with(kExporters)) continue;
    if (++count == 1) first = info.name;
  }
  if (count > 0) {
    subject.find(Severity::kError, "exporter_scale_name", first,
                 fmt::format("{} scales have the exporter's own name, which {} does not read",
                             count, version(subject.loader)),
                 "rename them from .weight_quantizer.scale to .weight_scale, or export as Quark's "
                 "file-to-file quantization does");
  }
  const size_t errors = subject.plan.count(Severity::kError);
  if (errors == 0) return;
  subject.report.is_complete = false;
  subject.find(Severity::kError, "loader_not_checked", "tensors",
               fmt::format("not checked: Ingot itself finds {} errors in the checkpoint", errors),
               "mend these first");
}

// Entries that leave a module of the file alone that is unquantized anyway, or modules that other
// versions look up, are no mistake.
class KnownNames {
 public:
  explicit KnownNames(const model::LoadPlan& plan) {
    for (const model::PlanRow& row : plan.rows) {
      names_.emplace(row.parameter.name);
      names_.emplace(row.parameter.module());
    }
  }

  bool has(std::string_view entry) const {
    return names_.contains(std::string(entry)) || entry.starts_with("model.decoder.") ||
           entry == "model.eh_proj" || entry == "model.enorm" || entry == "model.hnorm" ||
           entry == "model.shared_head.norm";
  }

 private:
  std::unordered_set<std::string> names_;
};

void report_dead_entries(const Subject& subject, const QuarkRules& rules) {
  const KnownNames known(subject.plan);
  const std::vector<bool> used = rules.used_origins();
  std::vector<std::string> globs;
  std::vector<std::string> dead;
  for (size_t i = 0; i < used.size(); ++i) {
    const std::string& entry = rules.exclude()[i];
    if (used[i] || known.has(entry)) continue;
    const bool is_expression = entry.starts_with("re:");
    (!is_expression && is_glob(entry) ? globs : dead).push_back(entry);
  }
  if (!globs.empty()) {
    subject.find(Severity::kWarning, "exclude_glob", first_of_list(globs),
                 fmt::format("{} does not read wildcards in exclude and matches nothing by them",
                             version(subject.loader)),
                 "write exact names, or regular expressions that begin with re:");
  }
  if (!dead.empty()) {
    subject.find(Severity::kWarning, "exclude_dead", first_of_list(dead),
                 fmt::format("{} looks up no module that these {} exclude entries match",
                             version(subject.loader), dead.size()),
                 "an entry is the exact name of one module, without .weight and without the names "
                 "around it, or re: and a regular expression that matches from the start");
  }
}

void report_expressions(const Subject& subject, const QuarkRules& rules) {
  std::vector<std::string> texts;
  for (const auto& problem : rules.problems()) texts.push_back(problem.text);
  if (texts.empty()) return;
  subject.find(Severity::kError, "exclude_expression", "quantization_config.exclude",
               fmt::format("not checked: {} expressions are refused by Python, or read otherwise "
                           "than here, or run away: {}",
                           texts.size(), first_of_list(texts)),
               "write exact names instead");
}

void check_quark(const Subject& subject, const json::object& quantization) {
  QuarkRules rules(subject.loader, quantization, subject.config, subject.report.findings);
  if (num_errors(subject.report) > 0) return;
  const bool projects_linearly =
      subject.loader != Loader::kVllm && subject.config.family != model::Family::kGlm4MoeLite;
  const auto modules =
      loader_modules(subject.loader, subject.config, subject.plan,
                     projects_linearly ? MtpProjection::kLinear : MtpProjection::kNeverQuantized);
  ModuleComparison comparison(subject.loader, ConfigForm::kQuark, subject.report);
  for (const LoaderModule& module : modules) {
    if (comparison.compare(module, rules.decide(module))) continue;
    for (std::string& entry : rules.entries_that_exclude(module)) {
      subject.report.exclude_to_add.push_back(std::move(entry));
    }
  }
  comparison.finish();
  report_expressions(subject, rules);
  report_dead_entries(subject, rules);
  subject.append(check_shared_experts(subject.loader, subject.config, subject.plan, true,
                                      rules.what_keeps_shared_experts_apart()));
  if (rules.is_exhausted()) {
    subject.find(Severity::kError, "loader_too_costly", "quantization_config",
                 "not checked: matching its entries takes more steps than are reasonable",
                 "write fewer patterns, or exact names");
  }
  subject.report.is_complete = rules.problems().empty() && !rules.is_exhausted();
}

void check_fp8(const Subject& subject, const json::object& quantization) {
  const Fp8Rules rules(subject.loader, quantization, subject.config, subject.report.findings);
  if (num_errors(subject.report) > 0) return;
  const auto modules =
      loader_modules(subject.loader, subject.config, subject.plan, MtpProjection::kNeverQuantized);
  ModuleComparison comparison(subject.loader, ConfigForm::kFp8, subject.report);
  for (const LoaderModule& module : modules) {
    if (comparison.compare(module, rules.decide(module))) continue;
    for (const std::string& name : module.published) {
      subject.report.exclude_to_add.push_back(name);
    }
  }
  comparison.finish();
  subject.append(
      check_shared_experts(subject.loader, subject.config, subject.plan, false, std::nullopt));
  subject.report.is_complete = true;
}

void check_unquantized(const Subject& subject) {
  const auto modules =
      loader_modules(subject.loader, subject.config, subject.plan, MtpProjection::kNeverQuantized);
  ModuleComparison comparison(subject.loader, ConfigForm::kNone, subject.report);
  for (const LoaderModule& module : modules) {
    const bool is_settled =
        comparison.compare(module, {scheme(BuiltFormat::kUnquantized), Decider::kNothing,
                                    "config.json has no quantization_config"});
    CHECK(is_settled, "nothing can be excluded where nothing is quantized");
  }
  comparison.finish();
  subject.report.is_complete = true;
}

void check_formats(const Subject& subject, const json::object& config_json) {
  const json::value* value = config_json.if_contains("quantization_config");
  if (value == nullptr || value->is_null()) {
    if (config_json.contains("compression_config")) {
      return subject.find(Severity::kNote, "loader_not_checked", "compression_config",
                          "not checked: this form is not known here",
                          "only quantization_config is read");
    }
    return check_unquantized(subject);
  }
  const json::object* quantization = value->if_object();
  const json::value* method =
      quantization == nullptr ? nullptr : quantization->if_contains("quant_method");
  const std::string_view text =
      method != nullptr && method->is_string() ? std::string_view(method->get_string()) : "";
  if (text == "quark") return check_quark(subject, *quantization);
  if (text == "fp8") return check_fp8(subject, *quantization);
  if (text == "compressed-tensors") {
    return subject.find(Severity::kNote, "loader_not_checked", "quantization_config.quant_method",
                        "not checked: \"compressed-tensors\" has rules that are not known here",
                        "only \"quark\" and \"fp8\" are checked");
  }
  subject.find(Severity::kError, "loader_not_checked", "quantization_config.quant_method",
               fmt::format("not checked: {:?} has rules that are not known here", text),
               "only \"quark\" and \"fp8\" are checked");
}

}  // namespace

std::string_view name(Loader loader) { return kLoaders[static_cast<size_t>(loader)].name; }

std::string_view version(Loader loader) { return kLoaders[static_cast<size_t>(loader)].version; }

std::optional<Loader> find_loader(std::string_view name) {
  const auto found = std::ranges::find(kLoaders, name, &LoaderNames::name);
  if (found == kLoaders.end()) return std::nullopt;
  return found->loader;
}

bool LoaderReport::loads_right() const {
  return is_complete && num_errors(*this) == 0 && !(differs_on_cuda && differs_on_rocm);
}

std::string_view LoaderReport::where() const {
  CHECK(loads_right());
  if (differs_on_rocm) return " on CUDA but not on ROCm";
  return differs_on_cuda ? " on ROCm but not on CUDA" : "";
}

LoaderReport check_for_loader(Loader loader, const json::value& config_json,
                              const model::ModelConfig& config, const model::LoadPlan& plan,
                              const tensor::Checkpoint& checkpoint) {
  LoaderReport report;
  report.loader = loader;
  const Subject subject{loader, config, plan, report};
  static const json::object kEmpty;
  const json::object* object = config_json.if_object();
  const json::object& document = object == nullptr ? kEmpty : *object;
  check_formats(subject, document);
  check_architecture(subject, document);
  check_names(subject, checkpoint);
  return report;
}

}  // namespace ingot::quantize
