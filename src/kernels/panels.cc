#include "kernels/panels.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace ingot::kernels {
namespace {

template <typename Word>
Word load_word(const std::byte* in, int64_t bytes) {
  Word word = 0;
  std::memcpy(&word, in, static_cast<size_t>(bytes));
  return word;
}

// Four nibbles into the low halves of four bytes.
uint32_t spread_nibbles(uint32_t nibbles) {
  const uint32_t pairs = (nibbles | nibbles << 8) & 0x00FF00FF;
  return (pairs | pairs << 4) & 0x0F0F0F0F;
}

// A word of consecutive columns of a row as its lane has it.
template <typename Word>
Word same(Word stored) {
  return stored;
}
// Stored, eight columns are the nibbles of a word from the lowest on.
uint32_t codes(uint32_t stored) {
  return spread_nibbles(stored & 0xFFFF) | spread_nibbles(stored >> 16) << 4;
}

// Deals the words of up to eight rows out to the lanes. What is left over stays as it was.
template <typename Word, Word (*kLane)(Word)>
void deal(const std::byte* rows, int64_t row_bytes, int64_t num_rows, std::byte* panel) {
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Word));
  for (int64_t row = 0; row < num_rows; ++row) {
    const std::byte* in = rows + row * row_bytes;
    std::byte* lane = panel + row * kBytes;
    for (int64_t at = 0; at < row_bytes; at += kBytes) {
      const bool whole = at + kBytes <= row_bytes;
      const Word word = kLane(whole ? load_word<Word>(in + at, kBytes)
                                    : load_word<Word>(in + at, row_bytes - at));
      std::memcpy(lane + at * kPanelRows, &word, sizeof(Word));
    }
  }
}

using Deal = void (*)(const std::byte* rows, int64_t row_bytes, int64_t num_rows, std::byte* panel);

Deal deal_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF16:
      return deal<uint16_t, same<uint16_t>>;
    case WeightFormat::kF32:
    case WeightFormat::kBF16:
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
      return deal<uint32_t, same<uint32_t>>;
    case WeightFormat::kMxfp4:
      return deal<uint32_t, codes>;
  }
  return nullptr;
}

}  // namespace

int64_t held_data_bytes(const Weight& weight) {
  if (weight.layout == WeightLayout::kRows) {
    return weight_data_bytes(weight.format, weight.rows, weight.cols);
  }
  return num_panels(weight.rows) * panel_blocks(weight.cols) * panel_block_bytes(weight.format);
}

int64_t held_scale_bytes(const Weight& weight) {
  const bool fills_up =
      weight.layout == WeightLayout::kPanels8 && weight.format != WeightFormat::kFp8Block;
  const int64_t rows = fills_up ? num_panels(weight.rows) * kPanelRows : weight.rows;
  return weight_scale_bytes(weight.format, rows, weight.cols);
}

void pack_rows(const void* rows, int64_t first_row, int64_t num_rows, const Weight& packed,
               std::byte* data) {
  CHECK(packed.layout == WeightLayout::kPanels8);
  CHECK(first_row % kPanelRows == 0 && first_row + num_rows <= packed.rows);
  CHECK(num_rows % kPanelRows == 0 || first_row + num_rows == packed.rows);
  const Deal deal = deal_of(packed.format);
  const auto* in = static_cast<const std::byte*>(rows);
  const int64_t row_bytes = weight_data_bytes(packed.format, 1, packed.cols);
  const int64_t panel_bytes = panel_blocks(packed.cols) * panel_block_bytes(packed.format);
  for (int64_t row = 0; row < num_rows; row += kPanelRows) {
    std::byte* panel = data + (first_row + row) / kPanelRows * panel_bytes;
    const int64_t count = std::min(kPanelRows, num_rows - row);
    if (count < kPanelRows || packed.cols % kPanelBlockColumns != 0) {
      std::memset(panel, 0, static_cast<size_t>(panel_bytes));
    }
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
  const int64_t blocks = panel_blocks(packed.cols);
  for (int64_t row = 0; row < num_panels(packed.rows) * kPanelRows; ++row) {
    std::byte* panel = out + row / kPanelRows * blocks * kPanelRows + row % kPanelRows;
    for (int64_t block = 0; block < blocks; ++block) {
      panel[block * kPanelRows] = row < packed.rows ? in[row * blocks + block] : std::byte{0};
    }
  }
}

}  // namespace ingot::kernels
