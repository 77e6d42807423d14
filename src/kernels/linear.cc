#include "kernels/linear.h"

#include "kernels/linear_avx2.h"
#include "kernels/linear_reference.h"

namespace ingot::kernels {
namespace {

using enum WeightFormat;
constexpr auto kBF16Activation = ActivationType::kBF16;
constexpr auto kF32Activation = ActivationType::kF32;
constexpr auto any_shape = refuses_nothing<LinearUse>;

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
    {"linear_f32_reference",
     Target::kReference,
     {kF32, kF32Activation},
     any_shape,
     linear_reference<float, float>},
    {"linear_f16_reference",
     Target::kReference,
     {kF16, kF32Activation},
     any_shape,
     linear_reference<tensor::Float16, float>},
    {"linear_bf16_reference",
     Target::kReference,
     {kBF16, kF32Activation},
     any_shape,
     linear_reference<tensor::BFloat16, float>},
    {"linear_f32_bf16_reference",
     Target::kReference,
     {kF32, kBF16Activation},
     any_shape,
     linear_reference<float, tensor::BFloat16>},
    {"linear_f16_bf16_reference",
     Target::kReference,
     {kF16, kBF16Activation},
     any_shape,
     linear_reference<tensor::Float16, tensor::BFloat16>},
    {"linear_bf16_bf16_reference",
     Target::kReference,
     {kBF16, kBF16Activation},
     any_shape,
     linear_reference<tensor::BFloat16, tensor::BFloat16>},
};

}  // namespace

std::span<const LinearVariant> linear_variants() { return kVariants; }

}  // namespace ingot::kernels
