#include "kernels/dequantize.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "kernels/weight_rows.h"

namespace ingot::kernels {
namespace {

void store(float value, float& out) { out = value; }
void store(float value, tensor::BFloat16& out) { out = tensor::to_bf16(value); }

template <typename Row, typename T>
void dequantize_row(const Weight& weight, int64_t row, T* out) {
  const Row reader(weight, row);
  for (int64_t k = 0; k < weight.cols; ++k) {
    store(reader.value(k) * reader.block_scale(k) * reader.row_scale(), out[k]);
  }
}

// What each byte of e4m3 stands for. Whole models of FP8 go through here when they are quantized,
// and a look-up takes a quarter of the instructions of the conversion.
const std::array<float, 256>& e4m3_values() {
  static const std::array<float, 256> values = [] {
    std::array<float, 256> table;
    for (size_t bits = 0; bits < table.size(); ++bits) {
      table[bits] = tensor::to_f32(tensor::Float8E4M3{static_cast<uint8_t>(bits)});
    }
    return table;
  }();
  return values;
}

// Stretches of `kStretch` values have one scale, or all of the row where it is 0.
template <typename Row, int64_t kStretch, typename T>
void dequantize_fp8_row(const Weight& weight, int64_t row, T* out) {
  const Row reader(weight, row);
  const float* values = e4m3_values().data();
  for (int64_t first = 0; first < weight.cols;) {
    const int64_t end = kStretch == 0 ? weight.cols : std::min(first + kStretch, weight.cols);
    const float scale = reader.block_scale(first) * reader.row_scale();
    for (int64_t k = first; k < end; ++k) store(values[reader.values[k].bits] * scale, out[k]);
    first = end;
  }
}

template <typename T>
using DequantizeRow = void (*)(const Weight& weight, int64_t row, T* out);

template <typename T>
DequantizeRow<T> row_function(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
      return dequantize_row<F32WeightRow, T>;
    case WeightFormat::kF16:
      return dequantize_row<F16WeightRow, T>;
    case WeightFormat::kBF16:
      return dequantize_row<BF16WeightRow, T>;
    case WeightFormat::kFp8Block:
      return dequantize_fp8_row<Fp8BlockWeightRow, kFp8BlockSize, T>;
    case WeightFormat::kFp8Channel:
      return dequantize_fp8_row<Fp8ChannelWeightRow, 0, T>;
    case WeightFormat::kMxfp4:
      return dequantize_row<Mxfp4WeightRow, T>;
  }
  return nullptr;
}

template <typename T>
void dequantize_range(const Weight& weight, int64_t first_row, int64_t num_rows, T* out) {
  CHECK(first_row >= 0 && num_rows >= 0 && first_row + num_rows <= weight.rows);
  const DequantizeRow<T> dequantize_one = row_function<T>(weight.format);
  for (int64_t row = 0; row < num_rows; ++row) {
    dequantize_one(weight, first_row + row, out + row * weight.cols);
  }
}

}  // namespace

void dequantize(const Weight& weight, float* out) { dequantize_range(weight, 0, weight.rows, out); }
void dequantize(const Weight& weight, tensor::BFloat16* out) {
  dequantize_range(weight, 0, weight.rows, out);
}

void dequantize_rows(const Weight& weight, int64_t first_row, int64_t num_rows, float* out) {
  dequantize_range(weight, first_row, num_rows, out);
}
void dequantize_rows(const Weight& weight, int64_t first_row, int64_t num_rows,
                     tensor::BFloat16* out) {
  dequantize_range(weight, first_row, num_rows, out);
}

}  // namespace ingot::kernels
