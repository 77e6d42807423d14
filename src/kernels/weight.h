#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::kernels {

// How a weight's numbers are stored. The file decides (dtype and scale tensor), never a name list.
enum class WeightFormat : uint8_t {
  kF32,
  kF16,
  kBF16,
  kFp8Block,    // e4m3 with an f32 scale per 128 x 128 block
  kFp8Channel,  // e4m3 with an f32 scale per output row
  kMxfp4,       // e2m1 with an e8m0 scale per 32 values of a row
};

constexpr std::string_view name(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return "f32";
    case WeightFormat::kF16:
      return "f16";
    case WeightFormat::kBF16:
      return "bf16";
    case WeightFormat::kFp8Block:
      return "fp8_block";
    case WeightFormat::kFp8Channel:
      return "fp8_channel";
    case WeightFormat::kMxfp4:
      return "mxfp4";
  }
  return "";
}

enum class WeightLayout : uint8_t {
  kRows,  // as stored: row after row, no padding
};

// A matrix [rows, cols] in memory that somebody else owns, applied as y = x W^T; a vector is one
// row. A plain value. `scales` belongs to formats that have them; `data` is null where only the
// shape is known.
struct Weight {
  WeightFormat format = WeightFormat::kF32;
  WeightLayout layout = WeightLayout::kRows;
  int64_t rows = 0;
  int64_t cols = 0;
  const void* data = nullptr;
  const void* scales = nullptr;

  bool present() const { return rows > 0; }
};

}  // namespace ingot::kernels
