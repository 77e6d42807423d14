#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "kernels/quantize_mxfp4.h"
#include "model/parameters.h"
#include "quantize/recipe.h"

namespace ingot::quantize {

// What became of one tensor.
struct TensorReport {
  std::string name;
  model::ModuleClass module_class = model::ModuleClass::kEmbedding;
  Treatment treatment = Treatment::kKeep;
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
  std::string source_hash;  // XXH3-128 of the source's bytes, scales after values, 32 hex digits
  // Empty for kept tensors. Of FP8 only values, sums and the largest error are counted.
  kernels::RoundingStatistics rounding;
};

// What a quantization did, in the order of the files that it wrote.
struct QuantizationReport {
  std::string recipe;
  std::string dequantization;  // "fp32", "bf16": what values of an FP8 source went through
  std::string scale_search;    // "even", "mse"
  bool complete = false;       // false in the middle of a run, and after an interrupted one
  std::vector<TensorReport> tensors;
};

// The file in a destination that says how it was made: enough to go on after an interruption, and
// what `ingot inspect` shows. Loaders do not look at it.
inline constexpr std::string_view kManifestName = "ingot_quantization.json";

// The report of a quantized model, or nothing where it has none. Errors: a manifest that is
// damaged, or of an unknown major version.
base::Result<std::optional<QuantizationReport>> read_report(const std::filesystem::path& directory);

base::json::object to_json(const TensorReport& tensor);
base::Result<TensorReport> tensor_report_from_json(const base::json::value& value,
                                                   std::string_view source);

// Tables: a row a module class and treatment (tensors, bytes before and after, relative RMS error,
// largest error, clipped share, zero blocks), and the `worst` tensors by relative RMS error.
std::string describe(const QuantizationReport& report, size_t worst = 10);

}  // namespace ingot::quantize
