#include "kernels/moe.h"

#include "kernels/activation_rows.h"
#include "kernels/dot_reference.h"
#include "kernels/moe_avx2.h"
#include "kernels/weight_rows.h"

namespace ingot::kernels {
namespace {

// Each (row, chosen expert) is a pair; member shares are weight rows, so that all members work on
// every pair and none waits for a busy expert.
template <typename W, typename A>
void moe_reference(const ExecutionContext& context, const MoeArgs& args) {
  const int64_t topk = args.routing.experts_per_token;
  const int64_t pairs = args.x.rows * topk;
  const int64_t hidden = args.x.cols;
  const int64_t intermediate = args.experts[0].gate.rows;
  const base::IndexRange inner = context.share(intermediate);
  for (int64_t pair = 0; pair < pairs; ++pair) {
    const MlpWeights& expert = args.experts[static_cast<size_t>(args.routing.experts[pair])];
    const A input(args.x, pair / topk);
    float* gate = args.gated + pair * intermediate;
    float* up = args.gated + (pairs + pair) * intermediate;
    for (int64_t o = inner.begin; o < inner.end; ++o) {
      gate[o] = dot_reference(W(expert.gate, o), input, hidden);
      up[o] = dot_reference(W(expert.up, o), input, hidden);
    }
  }
  context.barrier();
  const Activations middle = silu_multiply(context, args.gated, args.gated + pairs * intermediate,
                                           pairs, intermediate, args.x.type, args.encoded);
  const base::IndexRange outer = context.share(hidden);
  for (int64_t row = 0; row < args.x.rows; ++row) {
    for (int64_t o = outer.begin; o < outer.end; ++o) {
      float sum = 0;
      for (int64_t pair = row * topk; pair < (row + 1) * topk; ++pair) {
        const MlpWeights& expert = args.experts[static_cast<size_t>(args.routing.experts[pair])];
        sum += args.routing.weights[pair] *
               dot_reference(W(expert.down, o), A(middle, pair), intermediate);
      }
      args.out[row * hidden + o] = sum;
    }
  }
  context.barrier();
}

template <typename W, typename A>
constexpr MoeVariant reference(std::string_view name) {
  return {name,
          Target::kReference,
          {W::kFormat, A::kType},
          refuses_nothing<MoeUse>,
          moe_reference<W, A>};
}

#if defined(__x86_64__)
constexpr MoeVariant panels(std::string_view name, WeightFormat weight, ActivationType activation,
                            MoeFunction run) {
  return {name,
          Target::kAvx2,
          {weight, activation, WeightLayout::kPanels8},
          refuses_nothing<MoeUse>,
          run};
}
#endif

constexpr MoeVariant kVariants[] = {
#if defined(__x86_64__)
    panels("moe_f32_f32_avx2", WeightFormat::kF32, ActivationType::kF32, moe_f32_f32_avx2),
    panels("moe_f32_bf16_avx2", WeightFormat::kF32, ActivationType::kBF16, moe_f32_bf16_avx2),
    panels("moe_f16_f32_avx2", WeightFormat::kF16, ActivationType::kF32, moe_f16_f32_avx2),
    panels("moe_f16_bf16_avx2", WeightFormat::kF16, ActivationType::kBF16, moe_f16_bf16_avx2),
    panels("moe_bf16_f32_avx2", WeightFormat::kBF16, ActivationType::kF32, moe_bf16_f32_avx2),
    panels("moe_bf16_bf16_avx2", WeightFormat::kBF16, ActivationType::kBF16, moe_bf16_bf16_avx2),
    panels("moe_fp8_block_f32_avx2", WeightFormat::kFp8Block, ActivationType::kF32,
           moe_fp8_block_f32_avx2),
    panels("moe_fp8_block_bf16_avx2", WeightFormat::kFp8Block, ActivationType::kBF16,
           moe_fp8_block_bf16_avx2),
    panels("moe_fp8_channel_f32_avx2", WeightFormat::kFp8Channel, ActivationType::kF32,
           moe_fp8_channel_f32_avx2),
    panels("moe_fp8_channel_bf16_avx2", WeightFormat::kFp8Channel, ActivationType::kBF16,
           moe_fp8_channel_bf16_avx2),
    panels("moe_mxfp4_f32_avx2", WeightFormat::kMxfp4, ActivationType::kF32, moe_mxfp4_f32_avx2),
    panels("moe_mxfp4_bf16_avx2", WeightFormat::kMxfp4, ActivationType::kBF16, moe_mxfp4_bf16_avx2),
    panels("moe_mxfp4_int8_avx2", WeightFormat::kMxfp4, ActivationType::kInt8, moe_mxfp4_int8_avx2),
#endif
    reference<F32WeightRow, F32ActivationRow>("moe_f32_reference"),
    reference<F16WeightRow, F32ActivationRow>("moe_f16_reference"),
    reference<BF16WeightRow, F32ActivationRow>("moe_bf16_reference"),
    reference<Fp8BlockWeightRow, F32ActivationRow>("moe_fp8_block_reference"),
    reference<Fp8ChannelWeightRow, F32ActivationRow>("moe_fp8_channel_reference"),
    reference<Mxfp4WeightRow, F32ActivationRow>("moe_mxfp4_reference"),
    reference<F32WeightRow, BF16ActivationRow>("moe_f32_bf16_reference"),
    reference<F16WeightRow, BF16ActivationRow>("moe_f16_bf16_reference"),
    reference<BF16WeightRow, BF16ActivationRow>("moe_bf16_bf16_reference"),
    reference<Fp8BlockWeightRow, BF16ActivationRow>("moe_fp8_block_bf16_reference"),
    reference<Fp8ChannelWeightRow, BF16ActivationRow>("moe_fp8_channel_bf16_reference"),
    reference<Mxfp4WeightRow, BF16ActivationRow>("moe_mxfp4_bf16_reference"),
    reference<F32WeightRow, Int8ActivationRow>("moe_f32_int8_reference"),
    reference<F16WeightRow, Int8ActivationRow>("moe_f16_int8_reference"),
    reference<BF16WeightRow, Int8ActivationRow>("moe_bf16_int8_reference"),
    reference<Fp8BlockWeightRow, Int8ActivationRow>("moe_fp8_block_int8_reference"),
    reference<Fp8ChannelWeightRow, Int8ActivationRow>("moe_fp8_channel_int8_reference"),
    reference<Mxfp4WeightRow, Int8ActivationRow>("moe_mxfp4_int8_reference"),
};

}  // namespace

std::span<const MoeVariant> moe_variants() { return kVariants; }

}  // namespace ingot::kernels
