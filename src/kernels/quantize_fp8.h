#pragma once

#include <cstdint>
#include <span>

#include "kernels/variant.h"
#include "tensor/dtype.h"

namespace ingot::kernels {

// Rows [rows, cols] of the use's dtype to e4m3 with an f32 scale a row (kFp8Channel of weight.h),
// as AMD Quark 0.13 does it file to file (FP8E4M3PerChannelSpec), byte for byte:
//   scale = largest magnitude / 448, in f32; 2^-23 where that is 0, so for a row of zeros
//   quotient = x / (scale rounded to the source's dtype), itself rounded to the source's dtype
//   code = e4m3 of the quotient, to nearest even, magnitudes beyond 448 to 448; -0 stays
// So a bf16 or f16 source is rounded twice, under a scale that differs from the stored one by up to
// half a step of its dtype. One thing is ours: where the rounded scale is 0 (rows of an f16 source
// below 1.4e-5) Quark divides by it and writes NaN; here the quotient is then of the f32 scale.
//
// Errors are those of code times stored scale, not rounded. Sums are in f64: in a row eight lanes,
// lane l taking k = l mod 8 ascending, lanes l and l + 4 added, then l and l + 2, then the last
// two; rows are added in order, from zero, and the whole to what the pointers point at.
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

// One thread's work on some rows. Returns false when a value is NaN or infinite; what was written
// is then meaningless. REQUIRES: cols is positive.
using QuantizeFp8Function = bool (*)(const QuantizeFp8Args& args);
using QuantizeFp8Variant = Variant<QuantizeFp8Function, QuantizeFp8Use>;

// Every variant of this build, fastest first, reference last. All give the same bytes and the same
// sums, to the last bit.
std::span<const QuantizeFp8Variant> quantize_fp8_variants();

}  // namespace ingot::kernels
