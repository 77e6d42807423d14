#pragma once

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/weight.h"
#include "tensor/float16.h"

namespace ingot::kernels {

// out[i] = table[token[i]] as f32, unscaled. table [vocabulary, hidden] in f32, f16 or bf16;
// out [rows, hidden]. Collective. REQUIRES: every token is in [0, vocabulary).
void embed(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
           int64_t rows, float* out);

// Stored values as f32, exactly.
template <typename T>
using WidenRow = void (*)(const T* values, int64_t count, float* out);
void widen_f16_reference(const tensor::Float16* values, int64_t count, float* out);
void widen_f16_avx2(const tensor::Float16* values, int64_t count, float* out);
void widen_bf16_reference(const tensor::BFloat16* values, int64_t count, float* out);
void widen_bf16_avx2(const tensor::BFloat16* values, int64_t count, float* out);

// x[i] += y[i] for `count` values. Collective.
void add(const ExecutionContext& context, float* x, const float* y, int64_t count);

// The same, without a team.
using AddRow = void (*)(float* x, const float* y, int64_t count);
void add_reference(float* x, const float* y, int64_t count);
void add_avx2(float* x, const float* y, int64_t count);

}  // namespace ingot::kernels
