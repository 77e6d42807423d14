#pragma once

#include "kernels/linear.h"

namespace ingot::kernels {

// AVX2, FMA and F16C. An output element has eight lanes of one f32 vector accumulator, lane l
// taking k = l mod 8 ascending; lanes are added pairwise at the end. Named by weight and activation
// type.
void linear_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_f16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_bf16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);

}  // namespace ingot::kernels
