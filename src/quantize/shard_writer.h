#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "base/result.h"
#include "base/thread_team.h"
#include "quantize/quantization_manifest.h"
#include "quantize/source_files.h"
#include "quantize/tensor_writer.h"

namespace ingot::quantize {

// How work that may be interrupted came to its end without an error.
enum class Ending : uint8_t { kDone, kInterrupted };

// Makes shards, the tensors of one on all members of a team.
class ShardWriter {
 public:
  // `source_files` is what look_at_source gave.
  ShardWriter(const tensor::Checkpoint& checkpoint, const std::vector<SourceFile>& source_files,
              const QuantizerOptions& options, uint64_t buffer_bytes, base::ThreadTeam& team);

  // Writes one shard, whole or not at all; nothing where it was interrupted. Errors: those of
  // TensorWriter; a source that changes under its reading.
  base::Result<std::optional<FinishedShard>> write(const PlannedShard& shard,
                                                   const std::filesystem::path& path,
                                                   SharedWork& work);

  // Compares the source of a finished shard with the hashes that were made of it.
  // Errors: a tensor that differs, with its file.
  base::Result<Ending> check_hashes(const PlannedShard& shard, const FinishedShard& finished,
                                    SharedWork& work);

 private:
  base::Status check_source(const PlannedShard& shard) const;

  const tensor::Checkpoint& checkpoint_;
  const std::vector<SourceFile>& source_files_;
  const RoundingFunctions functions_;
  base::ThreadTeam& team_;
  std::vector<std::unique_ptr<TensorWriter>> writers_;  // one a member
};

}  // namespace ingot::quantize
