#pragma once

#include "kernels/quantize_fp8.h"

namespace ingot::kernels {

// AVX2 and F16C, named by the source's type.
bool quantize_fp8_f32_avx2(const QuantizeFp8Args& args);
bool quantize_fp8_f16_avx2(const QuantizeFp8Args& args);
bool quantize_fp8_bf16_avx2(const QuantizeFp8Args& args);

}  // namespace ingot::kernels
