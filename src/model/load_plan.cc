#include "model/load_plan.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <unordered_set>
#include <utility>

#include <xxhash.h>

#include "model/exclude_list.h"

namespace ingot::model {
namespace {

using tensor::Checkpoint;
using tensor::TensorInfo;

// 3 for "model.layers.3.mlp.gate.weight", -1 for a name outside layers.
int64_t layer_of(std::string_view tensor) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!tensor.starts_with(kPrefix)) return -1;
  tensor.remove_prefix(kPrefix.size());
  int64_t layer = -1;
  const auto [end, code] = std::from_chars(tensor.data(), tensor.data() + tensor.size(), layer);
  const bool whole = code == std::errc() && end != tensor.data() + tensor.size() && *end == '.';
  return whole ? layer : -1;
}

// Matches parameters with tensors and collects what is left over on either side.
class Planner {
 public:
  Planner(const ModelConfig& config, const Checkpoint& checkpoint)
      : config_(config), checkpoint_(checkpoint) {}

  LoadPlan build() {
    for (Parameter& parameter : list_parameters(config_)) place(std::move(parameter));
    // First what is there under an unexpected name, which explains what is missing.
    report_unclaimed();
    settle_mtp();
    compare_with_exclude_list(config_, plan_.rows, plan_.findings);
    for (const std::string& key : config_.unread_keys) {
      add(Severity::kWarning, "unread_config_key", "config.json: \"" + key + "\"",
          "Ingot does not read this key", "check that it does not change the model's arithmetic");
    }
    return std::move(plan_);
  }

 private:
  void add(Severity severity, std::string code, std::string subject, std::string message,
           std::string remedy) {
    plan_.findings.push_back({.severity = severity,
                              .code = std::move(code),
                              .subject = std::move(subject),
                              .message = std::move(message),
                              .remedy = std::move(remedy)});
  }

  void claim(const TensorInfo* tensor) {
    if (tensor != nullptr) claimed_.insert(tensor);
  }

  void place(Parameter parameter) {
    StoredTensorResult result = find_stored_tensor(checkpoint_, parameter);
    if (result.stored) {
      claim(result.stored->data);
      claim(result.stored->scales);
      if (parameter.module_class == ModuleClass::kMtp) ++num_mtp_found_;
      check_format(parameter, *result.stored);
      plan_.rows.push_back({.parameter = std::move(parameter), .stored = *result.stored});
      return;
    }
    if (!result.problem.empty()) {
      const std::string module(parameter.module());
      for (const char* suffix :
           {".weight", ".weight_packed", ".weight_scale", ".weight_scale_inv"}) {
        claim(checkpoint_.find(module + suffix));
      }
      claim(checkpoint_.find(parameter.name));
      add(Severity::kError, "unusable_tensor", parameter.name, std::move(result.problem),
          std::move(result.remedy));
      if (parameter.module_class == ModuleClass::kMtp) ++num_mtp_found_;
      return;
    }
    if (parameter.optional) return;
    missing_.push_back(std::move(parameter));
  }

  // What fits by itself and not with the rest.
  void check_format(const Parameter& parameter, const StoredTensor& stored) {
    if (parameter.role == Role::kRouterBias && stored.format != kernels::WeightFormat::kF32) {
      add(Severity::kWarning, "rounded_router_bias", parameter.name,
          fmt::format("stored as {}, and the published files have F32", name(stored.format)),
          "rounding may send tokens to other experts; prefer a file that keeps it");
    }
    if (parameter.expert < 0) return;
    const auto [first, added] = expert_formats_.emplace(parameter.layer, stored.format);
    if (added || first->second == stored.format) return;
    add(Severity::kError, "mixed_expert_formats", parameter.name,
        fmt::format("stored as {}, while other experts of this layer are {}", name(stored.format),
                    name(first->second)),
        "quantize the routed experts of a layer alike");
  }

  // An MTP layer that is missing as a whole only turns speculation off; one in part is an error.
  void settle_mtp() {
    const auto of_mtp = [](const Parameter& p) { return p.module_class == ModuleClass::kMtp; };
    plan_.has_mtp = num_mtp_found_ > 0 && std::ranges::none_of(missing_, of_mtp);
    if (config_.num_nextn_predict_layers > 0 && num_mtp_found_ == 0) {
      add(Severity::kNote, "no_mtp_layer", "MTP layer",
          "config.json announces it and the file has none of it",
          "the model runs without speculation");
    }
    for (const Parameter& parameter : missing_) {
      if (of_mtp(parameter) && num_mtp_found_ == 0) continue;
      if (parameter.expert >= 0 && layers_with_fused_experts_.contains(parameter.layer)) continue;
      report_missing(parameter);
    }
  }

  void report_missing(const Parameter& parameter) {
    const bool indexer = parameter.module_class == ModuleClass::kIndexer;
    if (indexer) {
      add(Severity::kError, "missing_indexer", parameter.name,
          "missing, though config.json makes this layer's indexer \"full\"",
          "give config.json the published indexer_types, or index_topk_freq and "
          "index_skip_topk_offset; the layers without indexer tensors are \"shared\"");
      return;
    }
    add(Severity::kError, "missing_tensor", parameter.name, "missing from the checkpoint",
        "download the shard that holds it, or use the config.json that belongs to these weights");
  }

  void report_unclaimed() {
    for (const TensorInfo& tensor : checkpoint_.tensors()) {
      if (claimed_.contains(&tensor)) continue;
      const std::string_view name = tensor.name;
      std::string message = "no parameter of this model has this name";
      std::string remedy =
          "config.json and weights do not belong together, or the file has extra "
          "tensors; remove them";
      std::string code = "unclaimed_tensor";
      const int64_t layer = layer_of(name);
      if (name.find(".self_attn.indexer.") != std::string_view::npos && layer >= 0 &&
          config_.indexer_type(layer) == IndexerType::kShared) {
        code = "unexpected_indexer";
        message = "an indexer in a layer that config.json makes \"shared\"";
        remedy = "give config.json the indexer_types that belong to these weights";
      } else if (name.find(".mlp.experts.") != std::string_view::npos && tensor.shape.rank() == 3) {
        code = "fused_experts";
        message = "experts fused into one 3-D tensor, as a re-saved checkpoint has them";
        remedy = "use the published checkpoint with one tensor an expert";
        layers_with_fused_experts_.insert(layer);
      } else if (config_.num_nextn_predict_layers == 0 && layer == config_.num_hidden_layers) {
        code = "unannounced_mtp";
        message = "an MTP layer that config.json does not announce";
        remedy = "set \"num_nextn_predict_layers\" to 1";
      }
      add(Severity::kError, std::move(code), tensor.name, std::move(message), std::move(remedy));
    }
  }

  const ModelConfig& config_;
  const Checkpoint& checkpoint_;
  LoadPlan plan_;
  std::vector<Parameter> missing_;
  std::map<int32_t, kernels::WeightFormat> expert_formats_;  // by layer: of its first expert
  std::unordered_set<const TensorInfo*> claimed_;
  std::unordered_set<int64_t> layers_with_fused_experts_;
  size_t num_mtp_found_ = 0;
};

}  // namespace

std::string Finding::line() const {
  std::string line = fmt::format("{}: {}; {}", subject, message, remedy);
  // Names come from strangers; none of them breaks the line or steers a terminal.
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return line;
}

size_t LoadPlan::count(Severity severity) const {
  return static_cast<size_t>(std::ranges::count(findings, severity, &Finding::severity));
}

base::Status LoadPlan::check() const {
  const size_t errors = count(Severity::kError);
  if (errors == 0) return {};
  const auto first = std::ranges::find(findings, Severity::kError, &Finding::severity);
  if (errors == 1) return base::error("{}", first->line());
  return base::error("{} ({} further error{}: ingot inspect lists all)", first->line(), errors - 1,
                     errors == 2 ? "" : "s");
}

std::vector<std::string> summarize(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  std::map<std::string_view, size_t> counts;
  for (const Finding& finding : findings) ++counts[finding.code];
  for (const Finding& finding : findings) {
    const size_t count = std::exchange(counts[finding.code], 0);
    if (finding.severity == Severity::kError || count == 0) continue;
    lines.push_back(count == 1 ? finding.line()
                               : fmt::format("{} ({} like it: ingot inspect lists all)",
                                             finding.line(), count));
  }
  return lines;
}

base::Result<LoadPlan> plan_load(const ModelConfig& config, const Checkpoint& checkpoint,
                                 Rank rank) {
  if (rank.world_size != 1 || rank.rank != 0) {
    return base::error("rank {} of {}: this build has no tensor parallelism; use one rank",
                       rank.rank, rank.world_size);
  }
  return Planner(config, checkpoint).build();
}

std::string model_hash(std::string_view config_text, const Checkpoint& checkpoint) {
  const std::string identity = std::string(config_text) + checkpoint.header_hash();
  return fmt::format("{:016x}", XXH3_64bits(identity.data(), identity.size()));
}

}  // namespace ingot::model
