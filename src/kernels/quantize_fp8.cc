#include "kernels/quantize_fp8.h"

#include "kernels/quantize_fp8_avx2.h"
#include "kernels/quantize_fp8_reference.h"

namespace ingot::kernels {
namespace {

using enum tensor::DType;
constexpr auto any_shape = refuses_nothing<QuantizeFp8Use>;

constexpr QuantizeFp8Variant kVariants[] = {
#if defined(__x86_64__)
    {"quantize_fp8_f32_avx2", Target::kAvx2, {kF32}, any_shape, quantize_fp8_f32_avx2},
    {"quantize_fp8_f16_avx2", Target::kAvx2, {kF16}, any_shape, quantize_fp8_f16_avx2},
    {"quantize_fp8_bf16_avx2", Target::kAvx2, {kBF16}, any_shape, quantize_fp8_bf16_avx2},
#endif
    {"quantize_fp8_f32_reference",
     Target::kReference,
     {kF32},
     any_shape,
     quantize_fp8_reference<float>},
    {"quantize_fp8_f16_reference",
     Target::kReference,
     {kF16},
     any_shape,
     quantize_fp8_reference<tensor::Float16>},
    {"quantize_fp8_bf16_reference",
     Target::kReference,
     {kBF16},
     any_shape,
     quantize_fp8_reference<tensor::BFloat16>},
};

}  // namespace

std::span<const QuantizeFp8Variant> quantize_fp8_variants() { return kVariants; }

}  // namespace ingot::kernels
