#pragma once

#include <cstdint>

#include "kernels/dot_reference.h"
#include "kernels/weight.h"
#include "tensor/float16.h"
#include "tensor/fp8.h"
#include "tensor/mxfp4.h"

namespace ingot::kernels {

// Readers of one stored row of a weight, a type for each format, for kernels that are written once
// for all of them. The number at k is value(k) * block_scale(k of its block) * row_scale(); blocks
// are the 32 values from a multiple of 32 on. Each is made from (weight, row) and names its format.

template <WeightFormat kTheFormat, typename T>
struct PlainWeightRow : PlainValues<T> {
  static constexpr WeightFormat kFormat = kTheFormat;
  PlainWeightRow(const Weight& weight, int64_t row)
      : PlainValues<T>{static_cast<const T*>(weight.data) + row * weight.cols} {}
};
using F32WeightRow = PlainWeightRow<WeightFormat::kF32, float>;
using F16WeightRow = PlainWeightRow<WeightFormat::kF16, tensor::Float16>;
using BF16WeightRow = PlainWeightRow<WeightFormat::kBF16, tensor::BFloat16>;

struct Fp8BlockWeightRow {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8Block;
  Fp8BlockWeightRow(const Weight& weight, int64_t row)
      : values(static_cast<const tensor::Float8E4M3*>(weight.data) + row * weight.cols),
        scales(static_cast<const float*>(weight.scales) +
               row / kFp8BlockSize * ((weight.cols + kFp8BlockSize - 1) / kFp8BlockSize)) {}

  float value(int64_t k) const { return tensor::to_f32(values[k]); }
  float block_scale(int64_t k) const { return scales[k / kFp8BlockSize]; }
  static float row_scale() { return 1; }

  const tensor::Float8E4M3* values;
  const float* scales;
};

struct Fp8ChannelWeightRow {
  static constexpr WeightFormat kFormat = WeightFormat::kFp8Channel;
  Fp8ChannelWeightRow(const Weight& weight, int64_t row)
      : values(static_cast<const tensor::Float8E4M3*>(weight.data) + row * weight.cols),
        scale(static_cast<const float*>(weight.scales)[row]) {}

  float value(int64_t k) const { return tensor::to_f32(values[k]); }
  static float block_scale(int64_t) { return 1; }
  float row_scale() const { return scale; }

  const tensor::Float8E4M3* values;
  float scale;
};

struct Mxfp4WeightRow {
  static constexpr WeightFormat kFormat = WeightFormat::kMxfp4;
  Mxfp4WeightRow(const Weight& weight, int64_t row)
      : packed(static_cast<const uint8_t*>(weight.data) + row * (weight.cols / 2)),
        scales(static_cast<const uint8_t*>(weight.scales) +
               row * ((weight.cols + tensor::kMxfp4BlockValues - 1) / tensor::kMxfp4BlockValues)) {}

  float value(int64_t k) const { return tensor::kE2M1Values[tensor::e2m1_code(packed, k)]; }
  float block_scale(int64_t k) const {
    return tensor::e8m0_to_f32(scales[k / tensor::kMxfp4BlockValues]);
  }
  static float row_scale() { return 1; }

  const uint8_t* packed;
  const uint8_t* scales;
};

}  // namespace ingot::kernels
