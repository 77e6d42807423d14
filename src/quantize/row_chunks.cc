#include "quantize/row_chunks.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/check.h"

namespace ingot::quantize {
namespace {

using kernels::WeightFormat;
using tensor::DType;

// Source and decoded values of what is written at once, so that system calls cost little.
constexpr uint64_t kChunkBytes = uint64_t{1} << 20;
// The same of what is read at once: values come from memory once, by the copy out of the page
// cache, and are hashed, rounded and counted while they are in a core's own cache.
constexpr uint64_t kPieceBytes = uint64_t{1} << 18;
constexpr uint64_t kLeastCopyBytes = 4096;

DType dtype_of(WeightFormat format) {
  if (format == WeightFormat::kF16) return DType::kF16;
  return format == WeightFormat::kBF16 ? DType::kBF16 : DType::kF32;
}

}  // namespace

uint64_t aligned(uint64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

RowChunks RowChunks::of(const PlannedTensor& tensor, Dequantization dequantization) {
  CHECK(!tensor.is_copied() && tensor.parameter.shape.rank() == 2, tensor.parameter.name);
  RowChunks chunks{.rows = tensor.parameter.shape[0], .cols = tensor.parameter.shape[1]};
  const auto cols = static_cast<uint64_t>(chunks.cols);
  const auto rows = static_cast<uint64_t>(chunks.rows);
  chunks.dtype = dtype_of(tensor.source.format);
  chunks.source_bytes = tensor.source.data->size_bytes / rows;
  if (tensor.source.scales != nullptr) {
    const bool narrow =
        tensor.treatment == Treatment::kKeep || dequantization == Dequantization::kBF16;
    chunks.dtype = narrow ? DType::kBF16 : DType::kF32;
    chunks.all_source_scales_bytes = tensor.source.scales->size_bytes;
    chunks.decoded_bytes = cols * tensor::size_bytes(chunks.dtype);
  }
  if (tensor.treatment == Treatment::kMxfp4) {
    chunks.values_bytes = cols / 2;
    chunks.scales_bytes = (cols + 31) / 32;
  }
  if (tensor.treatment == Treatment::kFp8Channel) {
    chunks.values_bytes = cols;
    chunks.scales_bytes = sizeof(float);
  }
  return chunks;
}

uint64_t RowChunks::buffer_bytes(int64_t num_rows) const {
  const auto count = static_cast<uint64_t>(num_rows);
  return aligned(all_source_scales_bytes) + aligned(count * source_bytes) +
         aligned(count * decoded_bytes) + aligned(count * values_bytes) +
         aligned(count * scales_bytes);
}

int64_t RowChunks::rows_within(uint64_t budget_bytes) const {
  const uint64_t fixed = aligned(all_source_scales_bytes) + 4 * kBufferAlignment;
  const uint64_t row = source_bytes + decoded_bytes + values_bytes + scales_bytes;
  uint64_t count = budget_bytes <= fixed ? 0 : (budget_bytes - fixed) / row;
  count =
      std::min(count, std::max<uint64_t>(kChunkBytes / (source_bytes + decoded_bytes), kGroupRows));
  return whole_groups(count, rows);
}

int64_t RowChunks::piece_rows(int64_t chunk_rows) const {
  const uint64_t count = kPieceBytes / (source_bytes + decoded_bytes);
  return whole_groups(std::max<uint64_t>(count, kGroupRows), chunk_rows);
}

int64_t RowChunks::whole_groups(uint64_t count, int64_t rows_max) const {
  if (count >= static_cast<uint64_t>(rows_max)) return rows_max;
  constexpr auto kBlock = static_cast<uint64_t>(kernels::kFp8BlockSize);
  static_assert(std::has_single_bit(kBlock));
  if (all_source_scales_bytes > 0) {
    count = count >= kBlock ? count / kBlock * kBlock : std::bit_floor(count);
  }
  constexpr auto kGroup = static_cast<uint64_t>(kGroupRows);
  static_assert(std::has_single_bit(kGroup) && kGroup <= kBlock);
  return static_cast<int64_t>(count / kGroup * kGroup);
}

uint64_t least_buffer_bytes(const PlannedTensor& tensor, Dequantization dequantization) {
  if (tensor.is_copied()) return kLeastCopyBytes;
  const RowChunks chunks = RowChunks::of(tensor, dequantization);
  return chunks.buffer_bytes(std::min(chunks.rows, kGroupRows)) + 4 * kBufferAlignment;
}

base::Result<uint64_t> member_buffer_bytes(const QuantizationPlan& plan,
                                           const QuantizerOptions& options, int members) {
  uint64_t least = kLeastCopyBytes;
  uint64_t useful = kChunkBytes;
  const PlannedTensor* longest = nullptr;
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      const uint64_t bytes = least_buffer_bytes(tensor, options.dequantization);
      if (longest == nullptr || bytes > least) longest = &tensor;
      least = std::max(least, bytes);
      if (tensor.is_copied()) continue;
      const RowChunks chunks = RowChunks::of(tensor, options.dequantization);
      const int64_t rows = chunks.rows_within(std::numeric_limits<uint64_t>::max());
      useful = std::max(useful, chunks.buffer_bytes(rows) + 4 * kBufferAlignment);
    }
  }
  const auto count = static_cast<uint64_t>(members);
  if (options.memory_bytes / count < least) {
    return base::error(
        "--memory of {} bytes is too little: {} needs a buffer of {} bytes on each of {} threads; "
        "give {} bytes or take fewer threads",
        options.memory_bytes, longest == nullptr ? "a copy" : longest->parameter.name, least,
        members, least * count);
  }
  return std::min(options.memory_bytes / count, useful);
}

}  // namespace ingot::quantize
