#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "quantize/quantization_plan.h"
#include "quantize/quantization_report.h"
#include "quantize/source_files.h"

namespace ingot::quantize {

inline constexpr uint64_t kManifestBytesMax = uint64_t{256} << 20;

// Raised when the same source, recipe and options give other bytes than before.
inline constexpr uint64_t kRoundingVersion = 1;

// What two runs must have in common for one to go on where the other stopped.
struct RunIdentity {
  std::string model_hash;                // of the source: config.json and tensor headers
  std::vector<SourceFile> source_files;  // as the run found them; times and inodes may differ
  uint64_t rounding_version = kRoundingVersion;
  std::string recipe;  // its name, which may differ
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

  QuantizationReport report() const&;
  QuantizationReport report() &&;  // moves the rows out, so that they are there once
};

// Adds to a result document that has schema and provenance.
void add_to(base::json::object& document, const QuantizationManifest& manifest);

// Gives the same document as text to `sink` piece by piece, a shard at a time. `result_document`
// has schema and provenance. Errors: those of the sink.
using TextSink = std::function<base::Status(std::string_view)>;
base::Status write_pieces(base::json::object result_document, const QuantizationManifest& manifest,
                          const TextSink& sink);
base::Status write_manifest(const std::filesystem::path& path, base::json::object result_document,
                            const QuantizationManifest& manifest);

// Errors: not a manifest of this version, damaged, a name or another text that is none, a file
// listed twice, more rows than `rows_max`.
base::Result<QuantizationManifest> parse_manifest(std::string_view text, std::string_view source,
                                                  size_t rows_max = SIZE_MAX);
// And a file that is larger than a manifest of `rows_max` rows can be.
base::Result<QuantizationManifest> read_manifest(const std::filesystem::path& path,
                                                 size_t rows_max = SIZE_MAX);

// 32 hex digits.
bool is_hash(std::string_view text);

}  // namespace ingot::quantize
