#pragma once

#include <cstdint>

#include "kernels/execution_context.h"

namespace ingot::kernels {

// out[i] = weight * x[source[i]] / sqrt(mean(x[source[i]]^2) + eps), all in f32. `source` picks
// rows of x; null takes row i. Sums run in double, so that any width keeps f32 accuracy.
struct RmsNormArgs {
  const float* x;         // rows of `cols`, dense
  const float* weight;    // [cols]
  float* out;             // [rows, cols], rows out_stride apart
  const int32_t* source;  // [rows] or null
  int64_t rows;
  int64_t cols;
  float eps;
  int64_t out_stride = 0;  // in floats; 0: dense
};

// Collective.
void rms_norm(const ExecutionContext& context, const RmsNormArgs& args);

// One row of it. `out` may be `x`.
using RmsNormRow = void (*)(const float* x, const float* weight, int64_t cols, float eps,
                            float* out);
void rms_norm_row_reference(const float* x, const float* weight, int64_t cols, float eps,
                            float* out);
void rms_norm_row_avx2(const float* x, const float* weight, int64_t cols, float eps, float* out);

// out = weight * (x - mean) / sqrt(variance + eps) + bias over one row, sums in double as well.
// `out` may be `x`.
using LayerNormRow = void (*)(const float* x, const float* weight, const float* bias, int64_t cols,
                              float eps, float* out);
void layer_norm_row_reference(const float* x, const float* weight, const float* bias, int64_t cols,
                              float eps, float* out);
void layer_norm_row_avx2(const float* x, const float* weight, const float* bias, int64_t cols,
                         float eps, float* out);

}  // namespace ingot::kernels
