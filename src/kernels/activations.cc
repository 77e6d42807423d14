#include "kernels/activations.h"

#include "tensor/float16.h"

namespace ingot::kernels {

Activations encode_activations(const ExecutionContext& context, const float* x, int64_t rows,
                               int64_t cols, ActivationType type, void* buffer) {
  if (type == ActivationType::kF32) {
    return {.type = type, .rows = rows, .cols = cols, .data = x};
  }
  auto* out = static_cast<tensor::BFloat16*>(buffer);
  const base::IndexRange range = context.share(rows * cols, 1024);
  for (int64_t i = range.begin; i < range.end; ++i) out[i] = tensor::to_bf16(x[i]);
  context.barrier();
  return {.type = type, .rows = rows, .cols = cols, .data = buffer};
}

}  // namespace ingot::kernels
