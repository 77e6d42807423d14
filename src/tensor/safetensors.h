#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"

namespace ingot::tensor {

// Where one tensor of a safetensors file lies and what it is.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;
  uint32_t file = 0;    // index into Checkpoint::files()
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t size_bytes = 0;
};

// Reads the header of a safetensors file: 8 bytes of little-endian header length, that many bytes
// of JSON, then the data. `head` is the start of the file and holds at least the whole header (or
// the whole file when that is shorter). `source` names the file in errors.
//
// Strict, since a wrong offset is a silently wrong weight. Errors: header longer than the file or
// 100 MB, not an object of {dtype, shape, data_offsets}, unknown key or dtype, repeated name,
// a size that does not follow from dtype and shape, tensors that overlap, leave a gap or end
// elsewhere than the file does (truncated or padded).
// Returns tensors in the order of their offsets, `file` 0. `__metadata__` is checked and dropped.
base::Result<std::vector<TensorInfo>> parse_safetensors_header(std::span<const std::byte> head,
                                                               uint64_t file_size_bytes,
                                                               std::string_view source);

// Bytes to map so that parse_safetensors_header has what it needs: 8 + header length, cut to the
// file's size. Errors: a file of under 8 bytes, or an impossible header length.
base::Result<uint64_t> safetensors_head_bytes(std::span<const std::byte> first_eight,
                                              uint64_t file_size_bytes, std::string_view source);

}  // namespace ingot::tensor
