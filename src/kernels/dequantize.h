#pragma once

#include "kernels/weight.h"
#include "tensor/float16.h"

namespace ingot::kernels {

// Every number of a weight of any format, value times scale computed in f32: out [rows, cols]. For
// loading; one caller, no team. bf16 rounds to nearest even.
void dequantize(const Weight& weight, float* out);
void dequantize(const Weight& weight, tensor::BFloat16* out);

// The same of rows [first_row, first_row + num_rows) alone: out [num_rows, cols]. Any number of
// threads may take different rows of a weight.
// REQUIRES: the weight has those rows.
void dequantize_rows(const Weight& weight, int64_t first_row, int64_t num_rows, float* out);
void dequantize_rows(const Weight& weight, int64_t first_row, int64_t num_rows,
                     tensor::BFloat16* out);

}  // namespace ingot::kernels
