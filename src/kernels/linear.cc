#include "kernels/linear.h"

#include "kernels/linear_avx2.h"
#include "kernels/linear_reference.h"

namespace ingot::kernels {
namespace {

using enum WeightFormat;
constexpr auto kBF16Activation = ActivationType::kBF16;
constexpr auto kF32Activation = ActivationType::kF32;
constexpr auto any_shape = refuses_nothing<LinearUse>;

template <typename W, typename A>
constexpr LinearVariant reference(std::string_view name) {
  return {name, Target::kReference, {W::kFormat, A::kType}, any_shape, linear_reference<W, A>};
}

constexpr LinearVariant kVariants[] = {
#if defined(__x86_64__)
    {"linear_f32_avx2", Target::kAvx2, {kF32, kF32Activation}, any_shape, linear_f32_avx2},
    {"linear_f16_avx2", Target::kAvx2, {kF16, kF32Activation}, any_shape, linear_f16_avx2},
    {"linear_bf16_avx2", Target::kAvx2, {kBF16, kF32Activation}, any_shape, linear_bf16_avx2},
    {"linear_bf16_bf16_avx2",
     Target::kAvx2,
     {kBF16, kBF16Activation},
     any_shape,
     linear_bf16_bf16_avx2},
#endif
    reference<F32WeightRow, F32ActivationRow>("linear_f32_reference"),
    reference<F16WeightRow, F32ActivationRow>("linear_f16_reference"),
    reference<BF16WeightRow, F32ActivationRow>("linear_bf16_reference"),
    reference<Fp8BlockWeightRow, F32ActivationRow>("linear_fp8_block_reference"),
    reference<Fp8ChannelWeightRow, F32ActivationRow>("linear_fp8_channel_reference"),
    reference<Mxfp4WeightRow, F32ActivationRow>("linear_mxfp4_reference"),
    reference<F32WeightRow, BF16ActivationRow>("linear_f32_bf16_reference"),
    reference<F16WeightRow, BF16ActivationRow>("linear_f16_bf16_reference"),
    reference<BF16WeightRow, BF16ActivationRow>("linear_bf16_bf16_reference"),
    reference<Fp8BlockWeightRow, BF16ActivationRow>("linear_fp8_block_bf16_reference"),
    reference<Fp8ChannelWeightRow, BF16ActivationRow>("linear_fp8_channel_bf16_reference"),
    reference<Mxfp4WeightRow, BF16ActivationRow>("linear_mxfp4_bf16_reference"),
    reference<F32WeightRow, Int8ActivationRow>("linear_f32_int8_reference"),
    reference<F16WeightRow, Int8ActivationRow>("linear_f16_int8_reference"),
    reference<BF16WeightRow, Int8ActivationRow>("linear_bf16_int8_reference"),
    reference<Fp8BlockWeightRow, Int8ActivationRow>("linear_fp8_block_int8_reference"),
    reference<Fp8ChannelWeightRow, Int8ActivationRow>("linear_fp8_channel_int8_reference"),
    reference<Mxfp4WeightRow, Int8ActivationRow>("linear_mxfp4_int8_reference"),
};

}  // namespace

std::span<const LinearVariant> linear_variants() { return kVariants; }

}  // namespace ingot::kernels
