#include "kernels/linear.h"

#include "kernels/linear_avx2.h"
#include "kernels/linear_reference.h"

namespace ingot::kernels {
namespace {

using enum WeightFormat;
constexpr auto kBF16Activation = ActivationType::kBF16;
constexpr auto kF32Activation = ActivationType::kF32;
constexpr auto kInt8Activation = ActivationType::kInt8;
constexpr auto any_shape = refuses_nothing<LinearUse>;

template <typename W, typename A>
constexpr LinearVariant reference(std::string_view name) {
  return {name, Target::kReference, {W::kFormat, A::kType}, any_shape, linear_reference<W, A>};
}

#if defined(__x86_64__)
constexpr LinearVariant panels(std::string_view name, WeightFormat weight,
                               ActivationType activation, LinearFunction run) {
  return {name, Target::kAvx2, {weight, activation, WeightLayout::kPanels8}, any_shape, run};
}
#endif

constexpr LinearVariant kVariants[] = {
#if defined(__x86_64__)
    panels("linear_f32_f32_avx2", kF32, kF32Activation, linear_f32_f32_avx2),
    panels("linear_f32_bf16_avx2", kF32, kBF16Activation, linear_f32_bf16_avx2),
    panels("linear_f16_f32_avx2", kF16, kF32Activation, linear_f16_f32_avx2),
    panels("linear_f16_bf16_avx2", kF16, kBF16Activation, linear_f16_bf16_avx2),
    panels("linear_bf16_f32_avx2", kBF16, kF32Activation, linear_bf16_f32_avx2),
    panels("linear_bf16_bf16_avx2", kBF16, kBF16Activation, linear_bf16_bf16_avx2),
    panels("linear_fp8_block_f32_avx2", kFp8Block, kF32Activation, linear_fp8_block_f32_avx2),
    panels("linear_fp8_block_bf16_avx2", kFp8Block, kBF16Activation, linear_fp8_block_bf16_avx2),
    panels("linear_fp8_channel_f32_avx2", kFp8Channel, kF32Activation, linear_fp8_channel_f32_avx2),
    panels("linear_fp8_channel_bf16_avx2", kFp8Channel, kBF16Activation,
           linear_fp8_channel_bf16_avx2),
    panels("linear_mxfp4_f32_avx2", kMxfp4, kF32Activation, linear_mxfp4_f32_avx2),
    panels("linear_mxfp4_bf16_avx2", kMxfp4, kBF16Activation, linear_mxfp4_bf16_avx2),
    panels("linear_mxfp4_int8_avx2", kMxfp4, kInt8Activation, linear_mxfp4_int8_avx2),
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

WeightLayout fastest_layout(WeightFormat weight, ActivationType activation, Target allowed) {
  for (const LinearVariant& variant : kVariants) {
    if (variant.kind.weight == weight && variant.kind.activation == activation &&
        variant.target <= allowed) {
      return variant.kind.layout;
    }
  }
  return WeightLayout::kRows;
}

}  // namespace ingot::kernels
