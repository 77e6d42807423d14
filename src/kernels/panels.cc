#include "kernels/panels.h"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::kernels {
namespace {

// Words of consecutive columns of a row, dealt out to the lanes.
template <typename Word>
void deal_words(const std::byte* rows, int64_t row_bytes, int64_t num_rows, std::byte* panel) {
  const auto words = row_bytes / static_cast<int64_t>(sizeof(Word));
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::byte* in = rows + row * row_bytes;
    for (int64_t i = 0; i < words; ++i) {
      std::memcpy(panel + (i * kPanelRows + row) * static_cast<int64_t>(sizeof(Word)),
                  in + i * static_cast<int64_t>(sizeof(Word)), sizeof(Word));
    }
  }
}

// Four nibbles into the low halves of four bytes.
uint32_t spread_nibbles(uint32_t nibbles) {
  const uint32_t pairs = (nibbles | nibbles << 8) & 0x00FF00FF;
  return (pairs | pairs << 4) & 0x0F0F0F0F;
}

// Stored, eight columns are the nibbles of a word from the lowest on.
void deal_codes(const std::byte* rows, int64_t row_bytes, int64_t num_rows, std::byte* panel) {
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::byte* in = rows + row * row_bytes;
    for (int64_t i = 0; i < row_bytes / 4; ++i) {
      uint32_t stored;
      std::memcpy(&stored, in + i * 4, 4);
      const uint32_t lane = spread_nibbles(stored & 0xFFFF) | spread_nibbles(stored >> 16) << 4;
      std::memcpy(panel + (i * kPanelRows + row) * 4, &lane, 4);
    }
  }
}

using Deal = void (*)(const std::byte* rows, int64_t row_bytes, int64_t num_rows, std::byte* panel);

Deal deal_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF16:
      return deal_words<uint16_t>;
    case WeightFormat::kF32:
    case WeightFormat::kBF16:
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
      return deal_words<uint32_t>;
    case WeightFormat::kMxfp4:
      return deal_codes;
  }
  return nullptr;
}

}  // namespace

std::string panels_refuse(int64_t cols) {
  if (cols % kPanelBlockColumns == 0) return {};
  return fmt::format("{} columns, not a multiple of {}", cols, kPanelBlockColumns);
}

int64_t held_data_bytes(const Weight& weight) {
  const int64_t rows =
      weight.layout == WeightLayout::kPanels8 ? num_panels(weight.rows) * kPanelRows : weight.rows;
  return weight_data_bytes(weight.format, rows, weight.cols);
}

int64_t held_scale_bytes(const Weight& weight) {
  const bool fills_up =
      weight.layout == WeightLayout::kPanels8 && weight.format != WeightFormat::kFp8Block;
  const int64_t rows = fills_up ? num_panels(weight.rows) * kPanelRows : weight.rows;
  return weight_scale_bytes(weight.format, rows, weight.cols);
}

void pack_rows(const void* rows, int64_t first_row, int64_t num_rows, const Weight& packed,
               std::byte* data) {
  CHECK(packed.layout == WeightLayout::kPanels8 && panels_refuse(packed.cols).empty());
  CHECK(first_row % kPanelRows == 0 && first_row + num_rows <= packed.rows);
  CHECK(num_rows % kPanelRows == 0 || first_row + num_rows == packed.rows);
  const Deal deal = deal_of(packed.format);
  const auto* in = static_cast<const std::byte*>(rows);
  const int64_t row_bytes = weight_data_bytes(packed.format, 1, packed.cols);
  for (int64_t row = 0; row < num_rows; row += kPanelRows) {
    std::byte* panel = data + (first_row + row) * row_bytes;
    const int64_t count = std::min(kPanelRows, num_rows - row);
    if (count < kPanelRows) std::memset(panel, 0, static_cast<size_t>(kPanelRows * row_bytes));
    deal(in + row * row_bytes, row_bytes, count, panel);
  }
}

void pack_scales(const void* scales, const Weight& packed, std::byte* out) {
  CHECK(packed.layout == WeightLayout::kPanels8);
  const int64_t stored = weight_scale_bytes(packed.format, packed.rows, packed.cols);
  if (packed.format != WeightFormat::kMxfp4) {
    std::memset(out, 0, static_cast<size_t>(held_scale_bytes(packed)));
    std::memcpy(out, scales, static_cast<size_t>(stored));
    return;
  }
  const auto* in = static_cast<const std::byte*>(scales);
  const int64_t blocks = packed.cols / kPanelBlockColumns;
  for (int64_t row = 0; row < num_panels(packed.rows) * kPanelRows; ++row) {
    std::byte* panel = out + row / kPanelRows * blocks * kPanelRows + row % kPanelRows;
    for (int64_t block = 0; block < blocks; ++block) {
      panel[block * kPanelRows] = row < packed.rows ? in[row * blocks + block] : std::byte{0};
    }
  }
}

}  // namespace ingot::kernels
