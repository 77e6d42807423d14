#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/quantize_mxfp4.h"
#include "model/manifest_name.h"
#include "model/parameters.h"
#include "quantize/recipe.h"

namespace ingot::quantize {

// What rounding did to one tensor: kernels::RoundingStatistics with only those scale bytes that
// occur, since a model has tens of thousands of these.
struct TensorRounding {
  struct ScaleCount {
    uint8_t byte = 0;
    uint64_t num_blocks = 0;
  };

  uint64_t num_values = 0;
  uint64_t num_blocks = 0;
  uint64_t num_zero_blocks = 0;
  uint64_t num_clipped = 0;
  double sum_squares = 0;
  double sum_squared_errors = 0;
  float error_max = 0;
  float magnitude_max = 0;
  std::vector<ScaleCount> scale_bytes;  // ascending

  static TensorRounding of(const kernels::RoundingStatistics& statistics);
  kernels::RoundingStatistics statistics() const;
};

// What became of one tensor.
struct TensorReport {
  std::string name;
  model::ModuleClass module_class = model::ModuleClass::kEmbedding;
  Treatment treatment = Treatment::kKeep;
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
  std::string source_hash;  // XXH3-128 of the source's bytes, scales after values, 32 hex digits
  // Empty for kept tensors. Of FP8 only values, sums and the largest error are counted.
  TensorRounding rounding;
};

// What a quantization did, in the order of the files that it wrote.
struct QuantizationReport {
  std::string recipe;
  std::string dequantization;  // "fp32", "bf16": what values of an FP8 source went through
  std::string scale_search;    // "even", "mse"
  bool complete = false;       // false in the middle of a run, and after an interrupted one
  std::vector<TensorReport> tensors;
};

// What became of the tensors of one class that were treated alike.
struct ClassReport {
  model::ModuleClass module_class = model::ModuleClass::kEmbedding;
  Treatment treatment = Treatment::kKeep;
  uint64_t num_tensors = 0;
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
  kernels::RoundingStatistics rounding;
};
std::vector<ClassReport> classes_of(const QuantizationReport& report);

// The manifest holds enough to go on after an interruption, and what `ingot inspect` shows. Loaders
// do not look at it.
using model::kManifestName;

// The report of a quantized model that has this many tensors, or nothing where it has none. Errors:
// a manifest that is damaged, of an unknown major version, or of more rows, or larger, than one of
// such a model can be: it came with the model, from a stranger.
base::Result<std::optional<QuantizationReport>> read_report(const std::filesystem::path& directory,
                                                            size_t num_tensors);

base::json::object to_json(const TensorReport& tensor);
base::json::array classes_json(const QuantizationReport& report);
base::Result<TensorReport> tensor_report_from_json(const base::json::value& value,
                                                   std::string_view source);

// Tables: a row a module class and treatment (tensors, bytes before and after, relative RMS error,
// largest error, clipped share, zero blocks), and the `worst` tensors by relative RMS error.
std::string describe(const QuantizationReport& report, size_t worst = 10);

}  // namespace ingot::quantize
