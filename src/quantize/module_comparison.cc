#include "quantize/module_comparison.h"

#include <algorithm>

#include <fmt/format.h>

namespace ingot::quantize {
namespace {

using kernels::WeightFormat;
using model::FormatRule;
using model::PlanRow;
using model::Severity;
using Rows = std::vector<const PlanRow*>;

// The form that a loader would have to build to read a row.
BuiltFormat needed_for(const PlanRow& row) {
  switch (row.stored.format) {
    case WeightFormat::kMxfp4:
      return BuiltFormat::kMxfp4;
    case WeightFormat::kFp8Block:
      return BuiltFormat::kFp8Block;
    case WeightFormat::kFp8Channel:
      return BuiltFormat::kFp8Channel;
    default:
      return BuiltFormat::kUnquantized;
  }
}

// What comes of a difference: shapes that differ stop the loader, equal ones may not.
std::string_view consequence(BuiltFormat built, BuiltFormat stored) {
  if (built == BuiltFormat::kMxfp4 || stored == BuiltFormat::kMxfp4) {
    return "the widths differ and it stops while loading";
  }
  if (stored == BuiltFormat::kUnquantized) {
    return "it would cast the values and wait for scales that are not there";
  }
  if (built == BuiltFormat::kUnquantized) {
    return "it would stop at the scales, or read the values without them";
  }
  return "the scales do not fit";
}

template <typename Is>
Rows rows_that(const LoaderModule& module, const Is& is) {
  Rows rows;
  std::ranges::copy_if(module.rows, std::back_inserter(rows),
                       [&](const PlanRow* row) { return is(*row); });
  return rows;
}

}  // namespace

ModuleComparison::ModuleComparison(Loader loader, ConfigForm form, LoaderReport& report)
    : loader_(loader), form_(form), report_(report) {}

void ModuleComparison::finish() {
  // The complete list is in the report; here it stands in words.
  for (auto& [finding, tensors] : findings_.take()) {
    report_.tensors_of_findings[report_.findings.size()] = std::move(tensors);
    report_.findings.push_back(std::move(finding));
  }
}

void ModuleComparison::refuse(const LoaderModule& module, const Decision& decision) {
  findings_.add(
      {.severity = Severity::kError,
       .code = "loader_refuses",
       .what = fmt::format("{} stops at {}", version(loader_), decision.rule),
       .remedy = decision.decider == Decider::kExcluded
                     ? "name all parts of a fused module or none"
                     : fmt::format("write {}", quark_entry_for(needed_for(*module.rows.front())))},
      module, module.rows, decision.scheme.words);
}

std::string ModuleComparison::remedy_for(const Decision& decision, const PlanRow& row) const {
  const BuiltFormat needed = needed_for(row);
  if (decision.decider == Decider::kNothing) {
    if (form_ == ConfigForm::kNone) return "describe the formats in quantization_config";
    return "store it unquantized: no version that was read takes it otherwise";
  }
  if (needed == BuiltFormat::kUnquantized) {
    return fmt::format("name them in {}; `--json` has the list in \"exclude_to_add\"",
                       form_ == ConfigForm::kFp8 ? "modules_to_not_convert" : "exclude");
  }
  if (decision.decider == Decider::kExcluded) {
    return fmt::format("take {} out, or write one that matches unquantized modules only",
                       decision.rule);
  }
  if (form_ == ConfigForm::kFp8) return "describe the formats as Quark does, by layer_quant_config";
  return fmt::format("give them an entry in layer_quant_config: {}", quark_entry_for(needed));
}

bool ModuleComparison::report_difference(const LoaderModule& module, const Decision& decision,
                                         const Rows& rows) {
  const BuiltFormat needed = needed_for(*rows.front());
  const std::string where = module.is_draft ? " in the MTP layer" : "";
  // An entry a module would be a finding a module; the first is the example.
  const bool is_excluded = decision.decider == Decider::kExcluded;
  const std::string rule = is_excluded ? "an entry that leaves them unquantized" : decision.rule;
  const bool names_none = decision.decider == Decider::kConfig;
  findings_.add(
      {.severity = Severity::kError,
       .code = module.is_draft ? "built_otherwise_mtp" : "built_otherwise",
       .what = fmt::format("{} would build them{} as {}, by {}, and the file has {}; {}",
                           version(loader_), where, decision.scheme.words, rule,
                           scheme(needed).words, consequence(decision.scheme.format, needed)),
       .remedy = remedy_for(decision, *rows.front())},
      module, rows,
      names_none ? fmt::format("it looks up {:?}", module.name)
                 : (is_excluded ? "the first by " + decision.rule : ""));
  return !(needed == BuiltFormat::kUnquantized && decision.decider == Decider::kConfig);
}

// CUDA builds of sglang and all of vLLM's decode FP8 on the way into the fused module; sglang on
// ROCm builds what the config says.
bool ModuleComparison::compare_index_key(const LoaderModule& module, const Decision& decision) {
  const BuiltFormat needed = needed_for(*module.rows.front());
  const bool fused = needed == BuiltFormat::kUnquantized || needed == BuiltFormat::kFp8Block ||
                     (loader_ == Loader::kVllm && needed == BuiltFormat::kFp8Channel);
  const bool linear = loader_ != Loader::kVllm && decision.scheme.format == needed;
  if (fused && (linear || loader_ == Loader::kVllm)) return true;
  const bool neither = !fused && !linear;
  if (!neither) (fused ? report_.differs_on_rocm : report_.differs_on_cuda) = true;
  const std::string_view what =
      neither ? "on no platform" : (fused ? "on CUDA but not on ROCm" : "on ROCm but not on CUDA");
  findings_.add({.severity = neither ? Severity::kError : Severity::kWarning,
                 .code = "index_key",
                 .what = fmt::format("{} fuses the indexer's wk with weights_proj in bf16 on CUDA "
                                     "and builds it as {} on ROCm; stored as {} it loads {}",
                                     version(loader_),
                                     loader_ == Loader::kVllm ? "the same" : decision.scheme.words,
                                     scheme(needed).words, what),
                 .remedy = needed == BuiltFormat::kUnquantized
                               ? remedy_for(decision, *module.rows.front())
                               : "store it unquantized and name it in the list of unquantized "
                                 "modules"},
                module, module.rows, "");
  return !(needed == BuiltFormat::kUnquantized && decision.decider == Decider::kConfig);
}

bool ModuleComparison::compare(const LoaderModule& module, const Decision& given) {
  ++report_.num_modules;
  report_.num_tensors += static_cast<int64_t>(module.rows.size());
  Decision decision = given;
  if (module.kind == ModuleKind::kNeverQuantized) {
    decision = {scheme(BuiltFormat::kUnquantized), Decider::kNothing,
                "a rule of its own for this kind of module"};
  }
  const bool is_fused_key = module.kind == ModuleKind::kIndexerKey && loader_ == Loader::kVllm;
  if (decision.scheme.format == BuiltFormat::kRefused && !is_fused_key) {
    refuse(module, decision);
    return true;
  }
  if (module.kind == ModuleKind::kIndexerKey) {
    return compare_index_key(module, decision);
  }
  const BuiltFormat first = needed_for(*module.rows.front());
  const auto others =
      rows_that(module, [&](const PlanRow& row) { return needed_for(row) != first; });
  if (!others.empty()) {
    findings_.add(
        {.severity = Severity::kError,
         .code = "mixed_formats",
         .what = fmt::format(
             "{} holds {} as one module, and the file has parts in {} and in {}", version(loader_),
             module.kind == ModuleKind::kExperts ? "the experts of a layer" : "them",
             scheme(first).words, scheme(needed_for(*others.front())).words),
         .remedy = "store all parts alike"},
        module, module.rows,
        fmt::format("{} is the first that differs", others.front()->parameter.module()));
    return true;
  }
  if (decision.scheme.format != first) return report_difference(module, decision, module.rows);
  check_scales(module, first);
  return true;
}

void ModuleComparison::add_scale_problem(const LoaderModule& module, const Rows& rows,
                                         std::string code, std::string what, std::string remedy) {
  if (rows.empty()) return;
  findings_.add({.severity = Severity::kError,
                 .code = std::move(code),
                 .what = std::move(what),
                 .remedy = std::move(remedy)},
                module, rows, "");
}

void ModuleComparison::check_scales(const LoaderModule& module, BuiltFormat built) {
  const std::string program(version(loader_));
  if (built == BuiltFormat::kMxfp4) {
    add_scale_problem(module,
                      rows_that(module,
                                [](const PlanRow& row) {
                                  return row.stored.rule == FormatRule::kMxfp4CompressedTensors;
                                }),
                      "packed_name",
                      fmt::format("{} looks for weight, and the file has weight_packed", program),
                      "rename them, or keep the config of compressed-tensors");
    add_scale_problem(
        module,
        rows_that(module, [](const PlanRow& row) { return row.parameter.shape[1] % 32 != 0; }),
        "partial_block",
        fmt::format("{} has no place for the scale of a last block of less than 32", program),
        "keep the module unquantized");
  }
  if (built == BuiltFormat::kFp8Channel) {
    add_scale_problem(
        module,
        rows_that(module, [](const PlanRow& row) { return row.stored.scales->shape.rank() != 1; }),
        "scale_shape", fmt::format("{} wants scales of the shape [O], not [O, 1]", program),
        "write them as [O]");
  }
  if (built != BuiltFormat::kFp8Block) return;
  // Quark's own class in vLLM has weight_scale; everything else has weight_scale_inv, and sglang
  // renames Quark's where a module is not made of parts.
  const bool wants_inv = loader_ != Loader::kVllm || form_ == ConfigForm::kFp8;
  const bool has_parts =
      module.kind == ModuleKind::kExperts || module.name.ends_with("gate_up_proj");
  const bool renames = loader_ == Loader::kSglang && !has_parts;
  const FormatRule wrong = wants_inv ? FormatRule::kFp8BlockScale : FormatRule::kFp8BlockScaleInv;
  if (wants_inv && renames) return;
  add_scale_problem(
      module, rows_that(module, [&](const PlanRow& row) { return row.stored.rule == wrong; }),
      "scale_name",
      fmt::format("{} looks for {}, and the file has {}", program,
                  wants_inv ? "weight_scale_inv" : "weight_scale",
                  wants_inv ? "weight_scale" : "weight_scale_inv"),
      fmt::format("rename the scales to {}", wants_inv ? "weight_scale_inv" : "weight_scale"));
}

}  // namespace ingot::quantize
