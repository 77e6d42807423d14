#pragma once

#include "kernels/linear.h"

namespace ingot::kernels {

// For weights in panels of 8 rows: first the weight's format, then the activations' type.
void linear_f32_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_f32_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_f16_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_f16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_bf16_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_bf16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_fp8_block_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_fp8_block_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_fp8_channel_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_fp8_channel_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_mxfp4_f32_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_mxfp4_bf16_avx2(const ExecutionContext& context, const LinearArgs& args);
void linear_mxfp4_int8_avx2(const ExecutionContext& context, const LinearArgs& args);

}  // namespace ingot::kernels
