#include "kernels/moe.h"

#include <cmath>

#include "kernels/dot_reference.h"

namespace ingot::kernels {
namespace {

using tensor::BFloat16;
using tensor::Float16;

// Each (row, chosen expert) is a pair; member shares are weight rows, so that all members work on
// every pair and none waits for a busy expert.
template <typename W, typename A>
void moe_reference(const ExecutionContext& context, const MoeArgs& args) {
  const int64_t pairs = args.x.rows * args.routing.experts_per_token;
  const int64_t hidden = args.x.cols;
  const int64_t intermediate = args.experts[0].gate.rows;
  const auto* x = static_cast<const A*>(args.x.data);
  const base::IndexRange inner = context.share(intermediate);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const MlpWeights& expert = args.experts[static_cast<size_t>(args.routing.experts[pair])];
    const A* input = x + pair / args.routing.experts_per_token * hidden;
    float* gate = args.gated + pair * intermediate;
    float* up = args.gated + (pairs + pair) * intermediate;
    for (int64_t o = inner.begin; o < inner.end; ++o) {
      gate[o] = dot_reference(static_cast<const W*>(expert.gate.data) + o * hidden, input, hidden);
      up[o] = dot_reference(static_cast<const W*>(expert.up.data) + o * hidden, input, hidden);
    }
  }
  context.barrier();
  const Activations activated =
      silu_multiply(context, args.gated, args.gated + pairs * intermediate, pairs, intermediate,
                    args.x.type, args.encoded);
  const auto* middle = static_cast<const A*>(activated.data);
  const base::IndexRange outer = context.share(hidden);
  for (int64_t row = 0; row < args.x.rows; ++row) {
    for (int64_t o = outer.begin; o < outer.end; ++o) {
      float sum = 0;
      for (int64_t k = 0; k < args.routing.experts_per_token; ++k) {
        const int64_t pair = row * args.routing.experts_per_token + k;
        const MlpWeights& expert = args.experts[static_cast<size_t>(args.routing.experts[pair])];
        sum += args.routing.weights[pair] *
               dot_reference(static_cast<const W*>(expert.down.data) + o * intermediate,
                             middle + pair * intermediate, intermediate);
      }
      args.out[row * hidden + o] = sum;
    }
  }
  context.barrier();
}

constexpr auto any_shape = refuses_nothing<MoeUse>;
constexpr auto kF32Activation = ActivationType::kF32;
constexpr auto kBF16Activation = ActivationType::kBF16;
constexpr MoeVariant kVariants[] = {
    {"moe_f32_reference",
     Target::kReference,
     {WeightFormat::kF32, kF32Activation},
     any_shape,
     moe_reference<float, float>},
    {"moe_f16_reference",
     Target::kReference,
     {WeightFormat::kF16, kF32Activation},
     any_shape,
     moe_reference<Float16, float>},
    {"moe_bf16_reference",
     Target::kReference,
     {WeightFormat::kBF16, kF32Activation},
     any_shape,
     moe_reference<BFloat16, float>},
    {"moe_f32_bf16_reference",
     Target::kReference,
     {WeightFormat::kF32, kBF16Activation},
     any_shape,
     moe_reference<float, BFloat16>},
    {"moe_f16_bf16_reference",
     Target::kReference,
     {WeightFormat::kF16, kBF16Activation},
     any_shape,
     moe_reference<Float16, BFloat16>},
    {"moe_bf16_bf16_reference",
     Target::kReference,
     {WeightFormat::kBF16, kBF16Activation},
     any_shape,
     moe_reference<BFloat16, BFloat16>},
};

}  // namespace

std::span<const MoeVariant> moe_variants() { return kVariants; }

float silu(float x) { return x / (1.0f + std::exp(-x)); }

Activations silu_multiply(const ExecutionContext& context, float* gate, const float* up,
                          int64_t rows, int64_t cols, ActivationType type, void* buffer) {
  const base::IndexRange range = context.share(rows * cols, 64);
  if (type == ActivationType::kF32) {
    for (int64_t i = range.begin; i < range.end; ++i) gate[i] = silu(gate[i]) * up[i];
  } else {
    auto* out = static_cast<BFloat16*>(buffer);
    for (int64_t i = range.begin; i < range.end; ++i) {
      out[i] = tensor::to_bf16(silu(gate[i]) * up[i]);
    }
  }
  context.barrier();
  return {.type = type,
          .rows = rows,
          .cols = cols,
          .data = type == ActivationType::kF32 ? static_cast<const void*>(gate) : buffer};
}

}  // namespace ingot::kernels
