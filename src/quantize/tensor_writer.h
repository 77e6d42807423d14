#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/progress.h"
#include "base/result.h"
#include "quantize/quantization_plan.h"
#include "quantize/quantization_report.h"
#include "quantize/quantizer.h"
#include "quantize/rounding_functions.h"
#include "quantize/source_hash.h"
#include "tensor/safetensors_writer.h"

namespace ingot::quantize {

// What the members of a team share while they work on tensors. Member 0 shows the progress.
struct SharedWork {
  base::Progress& progress;
  const std::function<bool()>& interrupted;  // may be empty
  std::atomic<uint64_t> done_bytes = 0;      // of sources
  std::atomic<bool> stopped = false;         // by an error elsewhere or an interruption

  // Counts, shows, and says whether to go on.
  bool go_on(uint64_t bytes, int member);
};

// One member's way of making tensors: reads a chunk, hashes it, rounds it or leaves it as it is,
// and writes it to its place, through one buffer of a fixed size.
class TensorWriter {
 public:
  TensorWriter(const tensor::Checkpoint& checkpoint, Dequantization dequantization,
               const RoundingFunctions& functions, uint64_t buffer_bytes)
      : checkpoint_(checkpoint),
        dequantization_(dequantization),
        functions_(functions),
        buffer_(buffer_bytes) {}

  // Makes one tensor; its outputs are number `first_output` of the writer's and what follows.
  // Errors: a read or a write that fails, a value that is NaN or infinite, a stop (without words).
  base::Result<TensorReport> write(const PlannedTensor& tensor, size_t first_output,
                                   tensor::SafetensorsWriter& writer, SharedWork& work, int member);

  // The hash alone.
  base::Result<std::string> hash(const PlannedTensor& tensor, SharedWork& work, int member);

 private:
  struct Job;
  struct Chunk;

  base::Status read_all(Job& job, const tensor::TensorInfo& info, bool writes);
  base::Status round_rows(Job& job);
  base::Status read_chunk(Job& job, const Chunk& chunk);
  bool round_group(Job& job, const Chunk& chunk, int64_t first, int64_t rows);
  base::Status round_chunk(Job& job, const Chunk& chunk);
  base::Status write_chunk(Job& job, const Chunk& chunk);

  const tensor::Checkpoint& checkpoint_;
  const Dequantization dequantization_;
  const RoundingFunctions& functions_;
  std::vector<std::byte> buffer_;
};

}  // namespace ingot::quantize
