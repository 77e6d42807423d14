#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "model/stored_tensor.h"
#include "tensor/checkpoint.h"

namespace ingot::model {

// Which share of the model a process holds.
struct Rank {
  int rank = 0;
  int world_size = 1;
};

// One parameter of the model and where it comes from.
struct PlanRow {
  Parameter parameter;
  StoredTensor stored;
};

enum class Severity : uint8_t {
  kNote,     // worth saying at start
  kWarning,  // config and file disagree without harm
  kError,    // the model cannot be loaded
};

// Something about a checkpoint that does not fit together. `subject` is a tensor, module or key.
struct Finding {
  Severity severity;
  std::string code;  // "missing_tensor"; the same for findings of one kind
  std::string subject;
  std::string message;
  std::string remedy;

  // "subject: message; remedy" in one line.
  std::string line() const;
};

// What will be loaded, decided from config.json and tensor headers before a byte of weights is read
// or allocated. Rows stand for parameters that the file has; everything that keeps the model from
// loading right is a finding. Keeps pointers into the checkpoint, which must outlive it.
struct LoadPlan {
  std::vector<PlanRow> rows;  // in the order of list_parameters
  std::vector<Finding> findings;
  bool has_mtp = false;  // the MTP layer is there, whole

  // The first error with a count of the others, or success.
  base::Status check() const;
  size_t count(Severity severity) const;
};

// What is worth saying when a model starts, one line a kind of finding: the first note or warning
// of each code with a count of the others.
std::vector<std::string> summarize(const std::vector<Finding>& findings);

// Errors: a world_size other than 1, which needs tensor parallelism.
base::Result<LoadPlan> plan_load(const ModelConfig& config, const tensor::Checkpoint& checkpoint,
                                 Rank rank);

// XXH3-64 over the text of config.json and all tensor headers, in 16 hex digits: the identity of a
// model in every report.
std::string model_hash(std::string_view config_text, const tensor::Checkpoint& checkpoint);

}  // namespace ingot::model
