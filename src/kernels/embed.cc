#include "kernels/embed.h"

#include "base/check.h"
#include "tensor/float16.h"

namespace ingot::kernels {
namespace {

template <typename T>
void embed_rows(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
                int64_t rows, float* out) {
  const auto* data = static_cast<const T*>(table.data);
  const base::IndexRange range = context.share(rows);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const T* source = data + tokens[row] * table.cols;
    for (int64_t i = 0; i < table.cols; ++i) out[row * table.cols + i] = tensor::to_f32(source[i]);
  }
  context.barrier();
}

}  // namespace

void embed(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
           int64_t rows, float* out) {
  switch (table.format) {
    case WeightFormat::kF32:
      return embed_rows<float>(context, table, tokens, rows, out);
    case WeightFormat::kF16:
      return embed_rows<tensor::Float16>(context, table, tokens, rows, out);
    case WeightFormat::kBF16:
      return embed_rows<tensor::BFloat16>(context, table, tokens, rows, out);
    case WeightFormat::kFp8Block:
    case WeightFormat::kFp8Channel:
    case WeightFormat::kMxfp4:
      CHECK(false, "an embedding table is never quantized");
  }
}

void add(const ExecutionContext& context, float* x, const float* y, int64_t count) {
  const base::IndexRange range = context.share(count, 16);
  for (int64_t i = range.begin; i < range.end; ++i) x[i] += y[i];
  context.barrier();
}

}  // namespace ingot::kernels
