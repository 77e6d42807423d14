#include "quantize/tensor_writer.h"

#include <algorithm>

#include "base/check.h"
#include "kernels/dequantize.h"
#include "model/weights.h"
#include "quantize/row_chunks.h"

namespace ingot::quantize {
namespace {

using kernels::WeightFormat;
using tensor::DType;

// Without words, so that it never covers the error that stopped the others.
std::unexpected<base::Error> stopped() { return std::unexpected(base::Error{}); }

WeightFormat format_of(DType dtype) {
  if (dtype == DType::kF16) return WeightFormat::kF16;
  return dtype == DType::kBF16 ? WeightFormat::kBF16 : WeightFormat::kF32;
}

}  // namespace

// One tensor on its way.
struct TensorWriter::Job {
  const PlannedTensor& tensor;
  size_t first_output = 0;
  tensor::SafetensorsWriter* writer = nullptr;
  SharedWork& work;
  int member = 0;
  RowChunks chunks = {};
  SourceHash hash = {};
  kernels::RoundingStatistics rounding = {};

  std::unexpected<base::Error> not_finite(const tensor::Checkpoint& checkpoint,
                                          std::string_view where) const {
    return base::error(
        "{}: tensor {} has NaN or infinity {}; the file is damaged or was exported wrong, get it "
        "again",
        checkpoint.path_of(*tensor.source.data).string(), tensor.source.data->name, where);
  }
};

// Some rows of it, and where in the buffer they are.
struct TensorWriter::Chunk {
  int64_t first = 0;
  int64_t rows = 0;
  std::span<std::byte> source_scales;  // of the whole tensor
  std::span<std::byte> source;
  std::span<std::byte> decoded;
  std::span<std::byte> values;
  std::span<std::byte> scales;

  // `count` of its rows from number `skipped`. All pieces have one place for their source, which
  // so stays in the cache; the rest is where the whole has it.
  Chunk piece(const RowChunks& chunks, int64_t skipped, int64_t count) const {
    const auto part = [&](std::span<std::byte> bytes, uint64_t row_bytes) {
      return bytes.subspan(static_cast<uint64_t>(skipped) * row_bytes,
                           static_cast<uint64_t>(count) * row_bytes);
    };
    return {.first = first + skipped,
            .rows = count,
            .source_scales = source_scales,
            .source = source.first(static_cast<uint64_t>(count) * chunks.source_bytes),
            .decoded = part(decoded, chunks.decoded_bytes),
            .values = part(values, chunks.values_bytes),
            .scales = part(scales, chunks.scales_bytes)};
  }
};

bool SharedWork::go_on(uint64_t bytes, int member) {
  const uint64_t done = done_bytes.fetch_add(bytes) + bytes;
  if (member == 0) progress.update(done);
  if (interrupted && interrupted()) stopped = true;
  return !stopped;
}

// Hashes a tensor piece by piece, and writes it as it is if wanted.
base::Status TensorWriter::read_all(Job& job, const tensor::TensorInfo& info, bool writes) {
  const uint64_t piece = std::min<uint64_t>(buffer_.size(), uint64_t{1} << 20) / 64 * 64;
  for (uint64_t first = 0; first < info.size_bytes; first += piece) {
    const uint64_t count = std::min(piece, info.size_bytes - first);
    const std::span<std::byte> bytes(buffer_.data(), count);
    TRY(checkpoint_.read(info, first, bytes));
    job.hash.update(bytes);
    if (writes) {
      const auto width = static_cast<int64_t>(tensor::size_bytes(info.dtype));
      const auto values = static_cast<int64_t>(count) / width;
      if (const auto index =
              model::find_non_finite(job.tensor.source.format, bytes.data(), values)) {
        const int64_t at = static_cast<int64_t>(first) / width + *index;
        return job.not_finite(checkpoint_, fmt::format("at element {}", at));
      }
      TRY(job.writer->write_at(job.first_output, first, bytes));
    }
    if (!job.work.go_on(count, job.member)) return stopped();
  }
  return {};
}

base::Status TensorWriter::read_chunk(Job& job, const Chunk& chunk) {
  const auto first = static_cast<uint64_t>(chunk.first);
  TRY(checkpoint_.read(*job.tensor.source.data, first * job.chunks.source_bytes, chunk.source));
  job.hash.update(chunk.source);
  if (chunk.decoded.empty()) return {};
  const WeightFormat format = job.tensor.source.format;
  const int64_t values = chunk.rows * job.chunks.cols;
  if (const auto index = model::find_non_finite(format, chunk.source.data(), values)) {
    return job.not_finite(checkpoint_,
                          fmt::format("at element {}", chunk.first * job.chunks.cols + *index));
  }
  // A chunk lies inside a row of blocks or begins with one; see RowChunks.
  const int64_t scale_row =
      format == WeightFormat::kFp8Block ? chunk.first / kernels::kFp8BlockSize : chunk.first;
  const int64_t scales_per_row =
      format == WeightFormat::kFp8Block
          ? (job.chunks.cols + kernels::kFp8BlockSize - 1) / kernels::kFp8BlockSize
          : 1;
  const kernels::Weight weight{
      .format = format,
      .rows = chunk.rows,
      .cols = job.chunks.cols,
      .data = chunk.source.data(),
      .scales =
          reinterpret_cast<const float*>(chunk.source_scales.data()) + scale_row * scales_per_row};
  if (job.chunks.dtype == DType::kF32) {
    kernels::dequantize(weight, reinterpret_cast<float*>(chunk.decoded.data()));
  } else {
    kernels::dequantize(weight, reinterpret_cast<tensor::BFloat16*>(chunk.decoded.data()));
  }
  return {};
}

// Rows of a chunk from number `first` of it. False where a value is not finite.
bool TensorWriter::round_group(Job& job, const Chunk& chunk, int64_t first, int64_t rows) {
  const RowChunks& chunks = job.chunks;
  const auto skipped = static_cast<uint64_t>(first);
  const std::byte* values = chunk.decoded.empty()
                                ? chunk.source.data() + skipped * chunks.source_bytes
                                : chunk.decoded.data() + skipped * chunks.decoded_bytes;
  std::byte* codes = chunk.values.data() + skipped * chunks.values_bytes;
  std::byte* scales = chunk.scales.data() + skipped * chunks.scales_bytes;
  switch (job.tensor.treatment) {
    case Treatment::kKeep:
      return !model::find_non_finite(format_of(chunks.dtype), values, rows * chunks.cols);
    case Treatment::kMxfp4:
      return functions_.mxfp4(chunks.dtype)({.values = values,
                                             .rows = rows,
                                             .cols = chunks.cols,
                                             .codes = reinterpret_cast<uint8_t*>(codes),
                                             .scales = reinterpret_cast<uint8_t*>(scales),
                                             .statistics = &job.rounding});
    case Treatment::kFp8Channel: {
      kernels::RoundingStatistics& rounding = job.rounding;
      rounding.num_values += static_cast<uint64_t>(rows * chunks.cols);
      return functions_.fp8(chunks.dtype)({.values = values,
                                           .rows = rows,
                                           .cols = chunks.cols,
                                           .codes = reinterpret_cast<uint8_t*>(codes),
                                           .scales = reinterpret_cast<float*>(scales),
                                           .sum_squares = &rounding.sum_squares,
                                           .sum_squared_errors = &rounding.sum_squared_errors,
                                           .error_max = &rounding.error_max});
    }
  }
  return false;
}

base::Status TensorWriter::round_chunk(Job& job, const Chunk& chunk) {
  for (int64_t first = 0; first < chunk.rows; first += kGroupRows) {
    const int64_t rows = std::min(kGroupRows, chunk.rows - first);
    if (round_group(job, chunk, first, rows)) continue;
    return job.not_finite(checkpoint_, fmt::format("in rows {} to {}", chunk.first + first,
                                                   chunk.first + first + rows - 1));
  }
  return {};
}

base::Status TensorWriter::write_chunk(Job& job, const Chunk& chunk) {
  const auto first = static_cast<uint64_t>(chunk.first);
  if (job.tensor.treatment == Treatment::kKeep) {
    return job.writer->write_at(job.first_output, first * job.chunks.decoded_bytes, chunk.decoded);
  }
  TRY(job.writer->write_at(job.first_output, first * job.chunks.values_bytes, chunk.values));
  return job.writer->write_at(job.first_output + 1, first * job.chunks.scales_bytes, chunk.scales);
}

base::Status TensorWriter::round_rows(Job& job) {
  job.chunks = RowChunks::of(job.tensor, dequantization_);
  const RowChunks& chunks = job.chunks;
  const int64_t chunk_rows = chunks.rows_within(buffer_.size());
  CHECK(chunk_rows > 0, "the budget was checked");
  const int64_t piece_rows = chunks.piece_rows(chunk_rows);
  std::byte* next = buffer_.data();
  const auto take = [&](uint64_t bytes) {
    const std::span<std::byte> part(next, bytes);
    next += aligned(bytes);
    CHECK(next <= buffer_.data() + buffer_.size());
    return part;
  };
  Chunk whole{.source_scales = take(chunks.all_source_scales_bytes)};
  const auto most = static_cast<uint64_t>(chunk_rows);
  whole.source = take(most * chunks.source_bytes);
  whole.decoded = take(most * chunks.decoded_bytes);
  whole.values = take(most * chunks.values_bytes);
  whole.scales = take(most * chunks.scales_bytes);
  const tensor::TensorInfo* source_scales = job.tensor.source.scales;
  if (source_scales != nullptr) {
    TRY(checkpoint_.read(*source_scales, 0, whole.source_scales));
    const int64_t count = source_scales->shape.num_elements().value();
    if (model::find_non_finite_scale(job.tensor.source.format, whole.source_scales.data(), count)) {
      return job.not_finite(checkpoint_, "in its scales");
    }
  }
  for (int64_t first = 0; first < chunks.rows; first += chunk_rows) {
    const int64_t rows = std::min(chunk_rows, chunks.rows - first);
    const auto count = static_cast<uint64_t>(rows);
    const Chunk chunk{.first = first,
                      .rows = rows,
                      .source_scales = whole.source_scales,
                      .source = whole.source.first(count * chunks.source_bytes),
                      .decoded = whole.decoded.first(count * chunks.decoded_bytes),
                      .values = whole.values.first(count * chunks.values_bytes),
                      .scales = whole.scales.first(count * chunks.scales_bytes)};
    for (int64_t skipped = 0; skipped < rows; skipped += piece_rows) {
      const Chunk piece = chunk.piece(chunks, skipped, std::min(piece_rows, rows - skipped));
      TRY(read_chunk(job, piece));
      TRY(round_chunk(job, piece));
    }
    TRY(write_chunk(job, chunk));
    if (!job.work.go_on(chunk.source.size(), job.member)) return stopped();
  }
  job.hash.update(whole.source_scales);
  return {};
}

base::Result<TensorReport> TensorWriter::write(const PlannedTensor& tensor, size_t first_output,
                                               tensor::SafetensorsWriter& writer, SharedWork& work,
                                               int member) {
  Job job{.tensor = tensor,
          .first_output = first_output,
          .writer = &writer,
          .work = work,
          .member = member};
  if (tensor.is_copied()) {
    TRY(read_all(job, *tensor.source.data, true));
  } else {
    TRY(round_rows(job));
  }
  return TensorReport{.name = tensor.source.data->name,
                      .module_class = tensor.parameter.module_class,
                      .treatment = tensor.treatment,
                      .source_bytes = tensor.source.size_bytes(),
                      .output_bytes = tensor.output_bytes,
                      .source_hash = job.hash.hex(),
                      .rounding = TensorRounding::of(job.rounding)};
}

base::Result<std::string> TensorWriter::hash(const PlannedTensor& tensor, SharedWork& work,
                                             int member) {
  Job job{.tensor = tensor, .work = work, .member = member};
  TRY(read_all(job, *tensor.source.data, false));
  if (tensor.source.scales != nullptr) TRY(read_all(job, *tensor.source.scales, false));
  return job.hash.hex();
}

}  // namespace ingot::quantize
