#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "quantize/quantization_plan.h"
#include "quantize/quantization_report.h"
#include "quantize/source_files.h"

namespace ingot::quantize {

inline constexpr uint64_t kManifestBytesMax = uint64_t{1} << 30;

// What two runs must have in common for one to go on where the other stopped.
struct RunIdentity {
  std::string model_hash;  // of the source: config.json and tensor headers
  std::vector<std::pair<std::string, uint64_t>> source_files;  // names and sizes
  std::string recipe;                                          // its name, which may differ
  std::vector<RecipeRule> rules;
  std::string dequantization;
  std::string scale_search;
  std::string layout_hash;  // XXH3-128 over the files, names, dtypes and shapes to be written
};

// How `there` differs from `here`, in words that end a sentence, or nothing where they agree.
std::string difference(const RunIdentity& there, const RunIdentity& here);

std::string layout_hash(const QuantizationPlan& plan);

// A shard that stands complete in the destination.
struct FinishedShard {
  std::string file_name;
  uint64_t file_bytes = 0;
  std::vector<SourceFile> sources;    // as they were when it was read
  std::vector<TensorReport> tensors;  // in the order of the plan
};

// docs/formats/quantized_checkpoint.md describes the document.
struct QuantizationManifest {
  RunIdentity identity;
  uint64_t num_shards = 0;  // of the plan
  std::vector<FinishedShard> shards;

  QuantizationReport report() const;
};

// Adds to a result document that has schema and provenance.
void add_to(base::json::object& document, const QuantizationManifest& manifest);

// Errors: not a manifest of this version, or damaged; the remedy is to start anew.
base::Result<QuantizationManifest> parse_manifest(std::string_view text, std::string_view source);
base::Result<QuantizationManifest> read_manifest(const std::filesystem::path& path);

}  // namespace ingot::quantize
