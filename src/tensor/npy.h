#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "base/output_file.h"
#include "base/result.h"
#include "tensor/shape.h"

namespace ingot::tensor {

// Writes a numpy file (format 1.0, little-endian float32, C order) row by row.
class NpyWriter {
 public:
  // An array of `shape`; finish() requires exactly that many values.
  static base::Result<NpyWriter> create(const std::filesystem::path& path, const Shape& shape);
  base::Status append(std::span<const float> values);
  base::Status finish();

 private:
  NpyWriter(base::OutputFile file, uint64_t remaining)
      : file_(std::move(file)), remaining_(remaining) {}

  base::OutputFile file_;
  uint64_t remaining_ = 0;
};

struct NpyArray {
  Shape shape;
  std::vector<float> values;
};

// Reads what NpyWriter writes and numpy's own float32 C-order files. Errors: anything else.
base::Result<NpyArray> read_npy(const std::filesystem::path& path);

}  // namespace ingot::tensor
