#pragma once

#include <filesystem>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/safetensors.h"

namespace ingot::tensor {

// The tensors of a model directory: model.safetensors, or the shards that
// model.safetensors.index.json lists. Opening reads headers only. Reads are safe from any thread.
class Checkpoint {
 public:
  // Errors: no safetensors here; missing shards (all named, "3 of 141"); index and shards that
  // disagree (a tensor in neither, in both, or in another shard); anything that
  // parse_safetensors_header refuses.
  static base::Result<Checkpoint> open(const std::filesystem::path& directory);

  // A checkpoint that is still to be written: it can be planned with, but has no files, and nothing
  // can be read. REQUIRES: names are unique.
  static Checkpoint of_headers(std::vector<TensorInfo> tensors);

  // Whether the directory holds any safetensors file or an index of such files.
  static bool exists(const std::filesystem::path& directory);

  // Of all files, by file and then offset.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  // Null when no tensor has this name.
  const TensorInfo* find(std::string_view name) const;

  const std::vector<base::InputFile>& files() const { return files_; }
  const std::filesystem::path& path_of(const TensorInfo& tensor) const {
    return files_[tensor.file].path();
  }

  // Reads bytes [first, first + out.size()) of a tensor's data.
  // REQUIRES: they lie inside the tensor.
  base::Status read(const TensorInfo& tensor, uint64_t first, std::span<std::byte> out) const;
  // Advice that the tensor will not be read again.
  void drop_from_page_cache(const TensorInfo& tensor) const;

  // Sum of the tensors' bytes.
  uint64_t size_bytes() const { return size_bytes_; }

  // XXH3-64 over all headers in file order, as 16 hex digits; half of a model's identity.
  const std::string& header_hash() const { return header_hash_; }

 private:
  Checkpoint() = default;

  std::vector<base::InputFile> files_;
  std::vector<TensorInfo> tensors_;
  std::unordered_map<std::string_view, size_t> by_name_;  // views into tensors_
  uint64_t size_bytes_ = 0;
  std::string header_hash_;
};

}  // namespace ingot::tensor
