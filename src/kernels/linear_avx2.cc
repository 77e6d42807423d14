#include "kernels/linear_avx2.h"

#include "kernels/float_product_avx2.h"
#include "kernels/integer_product_avx2.h"

namespace ingot::kernels {
namespace {

// Eight outputs of one row; the last panel may have fewer.
inline void store(__m256 values, float* y, int64_t count, Output output) {
  if (count >= kPanelRows) {
    if (output == Output::kAdd) values = _mm256_add_ps(_mm256_loadu_ps(y), values);
    _mm256_storeu_ps(y, values);
    return;
  }
  alignas(32) float eight[8];
  _mm256_store_ps(eight, values);
  for (int64_t i = 0; i < count; ++i) y[i] = output == Output::kAdd ? y[i] + eight[i] : eight[i];
}

template <typename Product>
void linear(const ExecutionContext& context, const LinearArgs& args) {
  const base::IndexRange range = context.share(num_panels(args.weight.rows), 4);
  const RowList x = rows_of(args.x);
  for (int64_t row = 0; row < args.x.rows; row += kProductRows) {
    const int64_t left = args.x.rows - row;
    const int64_t count = left < kProductRows ? left : kProductRows;
    Product::product(args.weight, range.begin, range.end - range.begin, x.from(row), count,
                     [&](int64_t r, int64_t panel, __m256 values) {
                       store(values, args.y + (row + r) * args.y_stride + panel * kPanelRows,
                             args.weight.rows - panel * kPanelRows, args.output);
                     });
  }
  context.barrier();
}

}  // namespace

void linear_f32_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<F32Panel, F32Input>>(context, args);
}
void linear_f32_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<F32Panel, BF16Input>>(context, args);
}
void linear_f16_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<F16Panel, F32Input>>(context, args);
}
void linear_f16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<F16Panel, BF16Input>>(context, args);
}
void linear_bf16_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<BF16Panel, F32Input>>(context, args);
}
void linear_bf16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<BF16Panel, BF16Input>>(context, args);
}
void linear_fp8_block_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Fp8BlockPanel, F32Input>>(context, args);
}
void linear_fp8_block_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Fp8BlockPanel, BF16Input>>(context, args);
}
void linear_fp8_channel_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Fp8ChannelPanel, F32Input>>(context, args);
}
void linear_fp8_channel_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Fp8ChannelPanel, BF16Input>>(context, args);
}
void linear_mxfp4_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Mxfp4Panel, F32Input>>(context, args);
}
void linear_mxfp4_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<FloatProduct<Mxfp4Panel, BF16Input>>(context, args);
}
void linear_mxfp4_int8_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<IntegerProduct>(context, args);
}

}  // namespace ingot::kernels
