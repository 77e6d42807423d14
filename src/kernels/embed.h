#pragma once

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/weight.h"

namespace ingot::kernels {

// out[i] = table[token[i]] as f32, unscaled. table [vocabulary, hidden] in f32, f16 or bf16;
// out [rows, hidden]. Collective. REQUIRES: every token is in [0, vocabulary).
void embed(const ExecutionContext& context, const Weight& table, const int32_t* tokens,
           int64_t rows, float* out);

// x[i] += y[i] for `count` values. Collective.
void add(const ExecutionContext& context, float* x, const float* y, int64_t count);

}  // namespace ingot::kernels
