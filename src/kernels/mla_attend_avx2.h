#pragma once

#include "kernels/mla_attend.h"

namespace ingot::kernels {

// AVX2, FMA and F16C. Within a dot product eight lanes of one f32 vector take values ascending and
// are then added pairwise; a weighted sum of rows has one accumulator a value, rows ascending.
// Cached rows and rows of kv_b are read where they lie; those of fp8, and those whose parts are not
// whole vectors of 16 values, are unpacked to f32 first. Named by kv_b's format and the cache's.
void mla_attend_f32_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_f16_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_f32_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_f16_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_bf16_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_f32_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_f16_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args);
void mla_attend_bf16_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args);

}  // namespace ingot::kernels
