#pragma once

#include "kernels/weight.h"
#include "tensor/float16.h"

namespace ingot::kernels {

// Every number of a weight of any format, value times scale computed in f32: out [rows, cols]. For
// loading; one caller, no team. bf16 rounds to nearest even.
void dequantize(const Weight& weight, float* out);
void dequantize(const Weight& weight, tensor::BFloat16* out);

}  // namespace ingot::kernels
