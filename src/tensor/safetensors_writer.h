#pragma once

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
  // Writes the header. REQUIRES: names are unique, sizes fit 63 bits.
  static base::Result<SafetensorsWriter> create(const std::filesystem::path& path,
                                                std::vector<TensorSpec> tensors);

  // Appends data of the tensors in the order given to create(), in pieces of any size.
  // REQUIRES: not more in all than the tensors hold.
  base::Status append(std::span<const std::byte> bytes);

  // REQUIRES: every byte was appended.
  base::Status finish();

 private:
  SafetensorsWriter(base::OutputFile file, uint64_t remaining_bytes)
      : file_(std::move(file)), remaining_bytes_(remaining_bytes) {}

  base::OutputFile file_;
  uint64_t remaining_bytes_ = 0;
};

}  // namespace ingot::tensor
