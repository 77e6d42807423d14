#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string_view>

#include "base/clock.h"
#include "base/json.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/quantize_mxfp4.h"
#include "kernels/target.h"
#include "quantize/quantization_plan.h"
#include "quantize/quantization_report.h"

namespace ingot::quantize {

// What values of an FP8 source are rounded to before they are quantized: Quark 0.13 does not, 0.12
// went through bf16.
enum class Dequantization : uint8_t { kF32, kBF16 };
std::string_view name(Dequantization dequantization);      // "fp32", "bf16"
std::string_view name(kernels::ScaleSearch scale_search);  // "even", "mse"

struct QuantizerOptions {
  Dequantization dequantization = Dequantization::kF32;
  kernels::ScaleSearch scale_search = kernels::ScaleSearch::kEven;
  uint64_t memory_bytes = uint64_t{1} << 30;  // of buffers in all; plan and report come on top
  kernels::Target target = kernels::Target::kReference;
  // Asked between two pieces of work, from any thread: whether to stop here. May be empty.
  std::function<bool()> interrupted = {};
  // Called once when the destination is taken and there is something to write. May be empty.
  std::function<void()> begins = {};
};

// Writes what the plan says to `destination`, shard after shard, the tensors of a shard on all
// members of the team, in row chunks that keep within `memory_bytes` whatever the size of a shard.
// Each shard is written under another name, made durable and renamed; then the manifest
// (quantization_manifest.h) is. config.json, the index and side files come last, so a directory
// with config.json is a complete one. Interrupted at any moment, the same call goes on after the
// last complete shard and ends with the same bytes; one that is complete it leaves as it is.
//
// An interruption is no error: the report has the tensors that are done and is not complete.
//
// Errors, none of which destroys anything: a destination that is neither empty nor a run of the
// same source, recipe and options; a source that changed since that run; too little
// space (found before the first byte); a full disk; a NaN or infinity, with the tensor's name; a
// read that fails.
base::Result<QuantizationReport> quantize(const tensor::Checkpoint& source,
                                          const base::json::value& source_config,
                                          const QuantizationPlan& plan,
                                          const std::filesystem::path& source_directory,
                                          const std::filesystem::path& destination,
                                          const QuantizerOptions& options, base::ThreadTeam& team,
                                          const base::Clock& clock);

// What quantize() would meet at its destination.
struct Outlook {
  bool is_taken_up = false;         // a run of the same source, recipe and options began there
  bool is_complete = false;         // and came to its end
  size_t num_finished_shards = 0;   // of such a run
  uint64_t bytes_to_write_max = 0;  // 0 where the model is complete
  uint64_t free_bytes = 0;          // with what would be removed first
};

// The same questions as quantize() asks before its first byte, and nothing is made or removed.
// Errors: those of quantize(), as far as they can be told beforehand. Sources of finished shards
// whose times differ are not read.
base::Result<Outlook> look_ahead(const tensor::Checkpoint& source, const QuantizationPlan& plan,
                                 const std::filesystem::path& source_directory,
                                 const std::filesystem::path& destination,
                                 const QuantizerOptions& options, base::ThreadTeam& team,
                                 const base::Clock& clock);

}  // namespace ingot::quantize
