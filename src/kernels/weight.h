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

// Whether a scale tensor belongs to the values.
constexpr bool is_quantized(WeightFormat format) {
  return format == WeightFormat::kFp8Block || format == WeightFormat::kFp8Channel ||
         format == WeightFormat::kMxfp4;
}

// Rows and columns that share one scale of kFp8Block.
inline constexpr int64_t kFp8BlockSize = 128;

enum class WeightLayout : uint8_t {
  kRows,     // as stored: row after row, no padding
  kPanels8,  // interleaved panels of 8 rows, see panels.h
};

constexpr std::string_view name(WeightLayout layout) {
  return layout == WeightLayout::kRows ? "rows" : "panels of 8";
}

// A matrix [rows, cols] in memory that somebody else owns, applied as y = x W^T; a vector is one
// row. A plain value. `data` is null where only the shape is known.
//
// Stored rows: `data` is [rows, cols] values, of kMxfp4 [rows, cols / 2] bytes of two codes. A
// number is its value times its scale, and `scales` is
//   kFp8Block    f32 [ceil(rows / 128), ceil(cols / 128)]
//   kFp8Channel  f32 [rows]
//   kMxfp4       e8m0 bytes [rows, ceil(cols / 32)]
// and null otherwise. Last blocks may be partial.
struct Weight {
  WeightFormat format = WeightFormat::kF32;
  WeightLayout layout = WeightLayout::kRows;
  int64_t rows = 0;
  int64_t cols = 0;
  const void* data = nullptr;
  const void* scales = nullptr;

  bool present() const { return rows > 0; }
};

// Bytes of the values and of the scales of a matrix as stored.
constexpr int64_t weight_data_bytes(WeightFormat format, int64_t rows, int64_t cols) {
  switch (format) {
    case WeightFormat::kF32:
      return rows * cols * 4;
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return rows * cols * 2;
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
      return rows * cols;
    case WeightFormat::kMxfp4:
      return rows * (cols / 2);
  }
  return 0;
}

constexpr int64_t weight_scale_bytes(WeightFormat format, int64_t rows, int64_t cols) {
  const auto blocks = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  switch (format) {
    case WeightFormat::kFp8Block:
      return blocks(rows, kFp8BlockSize) * blocks(cols, kFp8BlockSize) * 4;
    case WeightFormat::kFp8Channel:
      return rows * 4;
    case WeightFormat::kMxfp4:
      return rows * blocks(cols, 32);
    default:
      return 0;
  }
}

}  // namespace ingot::kernels
