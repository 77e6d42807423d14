#include "kernels/rms_norm.h"

#include <cmath>

#include "kernels/row_operations.h"

namespace ingot::kernels {

void rms_norm_row_reference(const float* x, const float* weight, int64_t cols, float eps,
                            float* out) {
  double sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += static_cast<double>(x[i]) * x[i];
  const auto scale = static_cast<float>(1.0 / std::sqrt(sum / static_cast<double>(cols) + eps));
  for (int64_t i = 0; i < cols; ++i) out[i] = x[i] * scale * weight[i];
}

void layer_norm_row_reference(const float* x, const float* weight, const float* bias, int64_t cols,
                              float eps, float* out) {
  double sum = 0;
  for (int64_t i = 0; i < cols; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(cols);
  double squares = 0;
  for (int64_t i = 0; i < cols; ++i) squares += (x[i] - mean) * (x[i] - mean);
  const double scale = 1.0 / std::sqrt(squares / static_cast<double>(cols) + eps);
  for (int64_t i = 0; i < cols; ++i) {
    out[i] = static_cast<float>((x[i] - mean) * scale) * weight[i] + bias[i];
  }
}

void rms_norm(const ExecutionContext& context, const RmsNormArgs& args) {
  const int64_t out_stride = args.out_stride == 0 ? args.cols : args.out_stride;
  const RmsNormRow norm = context.rows().rms_norm;
  const base::IndexRange range = context.share(args.rows);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const int64_t source = args.source == nullptr ? row : args.source[row];
    norm(args.x + source * args.cols, args.weight, args.cols, args.eps,
         args.out + row * out_stride);
  }
  context.barrier();
}

}  // namespace ingot::kernels
