#include "kernels/dequantize.h"

#include "kernels/weight_rows.h"

namespace ingot::kernels {
namespace {

void store(float value, float& out) { out = value; }
void store(float value, tensor::BFloat16& out) { out = tensor::to_bf16(value); }

template <typename Row, typename T>
void dequantize_rows(const Weight& weight, T* out) {
  for (int64_t row = 0; row < weight.rows; ++row) {
    const Row reader(weight, row);
    for (int64_t k = 0; k < weight.cols; ++k) {
      const float value = reader.value(k) * reader.block_scale(k) * reader.row_scale();
      store(value, out[row * weight.cols + k]);
    }
  }
}

template <typename T>
void dequantize_any(const Weight& weight, T* out) {
  switch (weight.format) {
    case WeightFormat::kF32:
      return dequantize_rows<F32WeightRow>(weight, out);
    case WeightFormat::kF16:
      return dequantize_rows<F16WeightRow>(weight, out);
    case WeightFormat::kBF16:
      return dequantize_rows<BF16WeightRow>(weight, out);
    case WeightFormat::kFp8Block:
      return dequantize_rows<Fp8BlockWeightRow>(weight, out);
    case WeightFormat::kFp8Channel:
      return dequantize_rows<Fp8ChannelWeightRow>(weight, out);
    case WeightFormat::kMxfp4:
      return dequantize_rows<Mxfp4WeightRow>(weight, out);
  }
}

}  // namespace

void dequantize(const Weight& weight, float* out) { dequantize_any(weight, out); }
void dequantize(const Weight& weight, tensor::BFloat16* out) { dequantize_any(weight, out); }

}  // namespace ingot::kernels
