#pragma once

#include <cstdint>
#include <span>

#include "kernels/variant.h"
#include "tensor/dtype.h"

namespace ingot::kernels {

// Rows [rows, cols] of the use's dtype to e4m3 with an f32 scale a row (kFp8Channel of weight.h):
// scale = largest magnitude / 448, value = nearest even of x / scale, saturated.
struct QuantizeFp8Args {
  const void* values;
  int64_t rows;
  int64_t cols;
  uint8_t* codes;  // [rows, cols]
  float* scales;   // [rows]
  // Added to.
  double* sum_squares;
  double* sum_squared_errors;
  float* error_max;  // raised
};

struct QuantizeFp8Use {
  struct Kind {
    tensor::DType dtype;  // kF32, kF16 or kBF16
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
};

// One thread's work on some rows. Returns false when a value is NaN or infinite.
using QuantizeFp8Function = bool (*)(const QuantizeFp8Args& args);
using QuantizeFp8Variant = Variant<QuantizeFp8Function, QuantizeFp8Use>;

// Every variant of this build, fastest first, reference last. All give the same bytes.
std::span<const QuantizeFp8Variant> quantize_fp8_variants();

}  // namespace ingot::kernels
