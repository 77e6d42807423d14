#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "quantize/quantization_plan.h"
#include "tensor/checkpoint.h"

namespace ingot::quantize {

// What tells a file of the source from a later one in its place.
struct SourceFile {
  std::string name;
  uint64_t size_bytes = 0;
  int64_t modified_ns = 0;  // since 1970, of the contents
  int64_t changed_ns = 0;   // of these or of anything about the file: no program can set it
  int64_t inode = 0;        // its bits as a signed number

  // As far as copies that keep times tell: a file is the same when it was moved or linked.
  bool is_as_old_as(const SourceFile& other) const {
    return name == other.name && size_bytes == other.size_bytes && modified_ns == other.modified_ns;
  }
  friend bool operator==(const SourceFile& a, const SourceFile& b) = default;
};

// The files of a checkpoint as they are now, in its order. Errors: one that cannot be looked at, or
// whose size is no longer the one it was opened with.
base::Result<std::vector<SourceFile>> look_at_source(const tensor::Checkpoint& checkpoint);

// An error when a file's contents are not as they were. `before` is what look_at_source gave,
// `file` an index.
base::Status check_unchanged(const tensor::Checkpoint& checkpoint,
                             const std::vector<SourceFile>& before, uint32_t file);

// The files that a shard's values and scales are read from, by index, ascending.
std::vector<uint32_t> source_files_of(const PlannedShard& shard);

}  // namespace ingot::quantize
