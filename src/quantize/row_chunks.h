#pragma once

#include <cstdint>

#include "base/result.h"
#include "quantize/quantization_plan.h"
#include "quantize/quantizer.h"

namespace ingot::quantize {

// Rows whose statistics are summed together before they are added to the tensor's, so that sums do
// not depend on the size of a chunk, and so on neither memory nor threads.
inline constexpr int64_t kGroupRows = 8;

// How the rows of one tensor that is not copied go through a buffer: some rows of the source, their
// decoded values where it is FP8, the values and scales that are written. A buffer holds a chunk of
// rows, and all scales of an FP8 source. Chunks are made of groups of kGroupRows.
struct RowChunks {
  int64_t rows = 0;
  int64_t cols = 0;
  tensor::DType dtype = tensor::DType::kF32;  // of what is rounded, decoded where it was FP8
  uint64_t all_source_scales_bytes = 0;
  // Of one row; 0 where there are none.
  uint64_t source_bytes = 0;
  uint64_t decoded_bytes = 0;
  uint64_t values_bytes = 0;
  uint64_t scales_bytes = 0;

  static RowChunks of(const PlannedTensor& tensor, Dequantization dequantization);

  // Bytes of a buffer for `rows` rows, each part on a boundary of 64 bytes.
  uint64_t buffer_bytes(int64_t num_rows) const;

  // How many rows fit a buffer, at most as many as are worth writing at once; 0 when not even one
  // group does. A chunk of an FP8 source begins and ends with a row of blocks, or lies inside one.
  int64_t rows_within(uint64_t budget_bytes) const;

  // How many rows of such a chunk to read, hash and round before the next ones: as many as stay in
  // a core's own cache. Of an FP8 source the same holds as of chunks.
  int64_t piece_rows(int64_t chunk_rows) const;

 private:
  int64_t whole_groups(uint64_t count, int64_t rows_max) const;
};

// Where each part of a buffer begins is a multiple of this.
inline constexpr uint64_t kBufferAlignment = 64;
uint64_t aligned(uint64_t bytes);

// The least buffer that a tensor can go through.
uint64_t least_buffer_bytes(const PlannedTensor& tensor, Dequantization dequantization);

// Bytes that each of `members` threads gets for its buffer: its share of options.memory_bytes, but
// no more than it has a use for. Errors: too little for kGroupRows rows of some tensor.
base::Result<uint64_t> member_buffer_bytes(const QuantizationPlan& plan,
                                           const QuantizerOptions& options, int members);

}  // namespace ingot::quantize
