#pragma once

#include "kernels/moe.h"

namespace ingot::kernels {

// For experts in panels of 8 rows: first the weights' format, then the activations' type. Rows are
// gathered by expert, so that an expert's weights are read once a step.
void moe_f32_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_f32_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_f16_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_f16_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_bf16_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_bf16_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_fp8_block_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_fp8_block_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_fp8_channel_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_fp8_channel_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_mxfp4_f32_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_mxfp4_bf16_avx2(const ExecutionContext& context, const MoeArgs& args);
void moe_mxfp4_int8_avx2(const ExecutionContext& context, const MoeArgs& args);

}  // namespace ingot::kernels
