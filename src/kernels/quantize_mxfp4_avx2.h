#pragma once

#include "kernels/quantize_mxfp4.h"

namespace ingot::kernels {

// AVX2 and F16C, named by the source's type; `search` is ScaleSearch::kSquaredError.
bool quantize_mxfp4_f32_avx2(const QuantizeMxfp4Args& args);
bool quantize_mxfp4_f16_avx2(const QuantizeMxfp4Args& args);
bool quantize_mxfp4_bf16_avx2(const QuantizeMxfp4Args& args);
bool quantize_mxfp4_f32_search_avx2(const QuantizeMxfp4Args& args);
bool quantize_mxfp4_f16_search_avx2(const QuantizeMxfp4Args& args);
bool quantize_mxfp4_bf16_search_avx2(const QuantizeMxfp4Args& args);

}  // namespace ingot::kernels
