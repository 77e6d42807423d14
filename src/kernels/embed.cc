#include "kernels/embed.h"

#include "base/check.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

template <typename T>
void widen(const T* values, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = tensor::to_f32(values[i]);
}

template <typename T, typename Widen>
void embed_rows(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
                int64_t rows, float* out, const Widen& widen_row) {
  const auto* data = static_cast<const T*>(table.data);
  const base::IndexRange range = context.share(rows);
  for (int64_t row = range.begin; row < range.end; ++row) {
    widen_row(data + tokens[row] * table.cols, table.cols, out + row * table.cols);
  }
  context.barrier();
}

}  // namespace

void embed(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
           int64_t rows, float* out) {
  switch (table.format) {
    case WeightFormat::kF32:
      return embed_rows<float>(context, table, tokens, rows, out, widen<float>);
    case WeightFormat::kF16:
      return embed_rows<tensor::Float16>(context, table, tokens, rows, out,
                                         context.rows().widen_f16);
    case WeightFormat::kBF16:
      return embed_rows<tensor::BFloat16>(context, table, tokens, rows, out,
                                          context.rows().widen_bf16);
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
    case WeightFormat::kMxfp4:
      CHECK(false, "an embedding table is never quantized");
  }
}

void widen_f16_reference(const tensor::Float16* values, int64_t count, float* out) {
  widen(values, count, out);
}

void widen_bf16_reference(const tensor::BFloat16* values, int64_t count, float* out) {
  widen(values, count, out);
}

void add(const ExecutionContext& context, float* x, const float* y, int64_t count) {
  const base::IndexRange range = context.share(count, 16);
  context.rows().add(x + range.begin, y + range.begin, range.end - range.begin);
  context.barrier();
}

void add_reference(float* x, const float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] += y[i];
}

}  // namespace ingot::kernels
