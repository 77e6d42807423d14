#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "base/check.h"
#include "kernels/quantize_fp8.h"
#include "tensor/float16.h"
#include "tensor/fp8.h"

namespace ingot::kernels {

// The plain form of the rule that quantize_fp8.h states, one value after another.

// `value` as T can hold it.
template <typename T>
float rounded_to(float value) {
  if constexpr (std::is_same_v<T, tensor::Float16>) return tensor::to_f32(tensor::to_f16(value));
  if constexpr (std::is_same_v<T, tensor::BFloat16>) return tensor::to_f32(tensor::to_bf16(value));
  return value;
}

inline float fp8_row_scale(float magnitude_max) {
  const float scale = magnitude_max / tensor::kFloat8E4M3Max;
  return scale == 0 ? 0x1p-23f : scale;
}

// What values are divided by.
template <typename T>
float fp8_row_divisor(float scale) {
  const float rounded = rounded_to<T>(scale);
  return rounded == 0 ? scale : rounded;
}

inline double add_eight_lanes(const double* lanes) {
  double halves[4];
  for (int l = 0; l < 4; ++l) halves[l] = lanes[l] + lanes[l + 4];
  return (halves[0] + halves[2]) + (halves[1] + halves[3]);
}

struct Fp8RowError {
  double sum_squares = 0;
  double sum_squared_errors = 0;
  double error_max = 0;
};

template <typename T>
Fp8RowError quantize_fp8_row(const T* source, int64_t cols, float scale, uint8_t* codes) {
  const float divisor = fp8_row_divisor<T>(scale);
  double squares[8] = {};
  double squared_errors[8] = {};
  Fp8RowError row;
  for (int64_t k = 0; k < cols; ++k) {
    const float value = tensor::to_f32(source[k]);
    const tensor::Float8E4M3 code = tensor::to_e4m3(rounded_to<T>(value / divisor));
    codes[k] = code.bits;
    const double error = static_cast<double>(tensor::to_f32(code)) * scale - value;
    squares[k % 8] += static_cast<double>(value) * value;
    squared_errors[k % 8] += error * error;
    row.error_max = std::max(row.error_max, std::abs(error));
  }
  row.sum_squares = add_eight_lanes(squares);
  row.sum_squared_errors = add_eight_lanes(squared_errors);
  return row;
}

// T is float, tensor::Float16 or tensor::BFloat16.
template <typename T>
bool quantize_fp8_reference(const QuantizeFp8Args& args) {
  CHECK(args.cols > 0);
  Fp8RowError total;
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* source = static_cast<const T*>(args.values) + row * args.cols;
    float magnitude_max = 0;
    for (int64_t k = 0; k < args.cols; ++k) {
      const float value = tensor::to_f32(source[k]);
      if (!std::isfinite(value)) return false;
      magnitude_max = std::max(magnitude_max, std::abs(value));
    }
    args.scales[row] = fp8_row_scale(magnitude_max);
    const Fp8RowError part =
        quantize_fp8_row(source, args.cols, args.scales[row], args.codes + row * args.cols);
    total.sum_squares += part.sum_squares;
    total.sum_squared_errors += part.sum_squared_errors;
    total.error_max = std::max(total.error_max, part.error_max);
  }
  *args.sum_squares += total.sum_squares;
  *args.sum_squared_errors += total.sum_squared_errors;
  *args.error_max = std::max(*args.error_max, static_cast<float>(total.error_max));
  return true;
}

}  // namespace ingot::kernels
