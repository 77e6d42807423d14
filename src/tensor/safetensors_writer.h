#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace ingot::tensor {

struct TensorSpec {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
};

// Writes one safetensors file of known contents, tensor after tensor, never holding more than the
// caller's piece. The file appears when finish() succeeds; before that nothing stands at its path.
class SafetensorsWriter {
 public:
  SafetensorsWriter(SafetensorsWriter&& other) noexcept
      : file_(std::move(other.file_)),
        offsets_(std::move(other.offsets_)),
        remaining_bytes_(other.remaining_bytes_.load()) {}

  // Writes the header. REQUIRES: names are unique, sizes fit 63 bits.
  static base::Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                                std::vector<TensorSpec> tensors);

  // Appends data of the tensors in the order given to create(), in pieces of any size.
  // REQUIRES: not more in all than the tensors hold.
  base::Status append(std::span<const std::byte> bytes);

  // Takes the file's whole space on disk at once; see OutputFile::reserve.
  base::Status reserve();

  // Writes data of one tensor, by its place in the list given to create(), from byte `first` of it.
  // Any number of threads may do so at once; append() is not used beside it.
  // REQUIRES: the bytes lie inside the tensor, and none is written twice.
  base::Status write_at(size_t tensor, uint64_t first, std::span<const std::byte> bytes);

  // REQUIRES: every byte was written.
  base::Status finish();

  // The size of the file that these tensors make, header included.
  static uint64_t file_bytes(const std::vector<TensorSpec>& tensors);

 private:
  SafetensorsWriter(base::OutputFile file, std::vector<uint64_t> offsets)
      : file_(std::move(file)),
        offsets_(std::move(offsets)),
        remaining_bytes_(offsets_.back() - offsets_.front()) {}

  base::OutputFile file_;
  std::vector<uint64_t> offsets_;  // in the file, of each tensor's first byte, then the end
  std::atomic<uint64_t> remaining_bytes_ = 0;
};

}  // namespace ingot::tensor
