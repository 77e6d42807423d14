#pragma once

#include <cstdint>

#include "kernels/activations.h"
#include "kernels/weight.h"

namespace ingot::model {

// In what type linear layers multiply: kAuto follows the weight's stored format.
enum class ActivationChoice : uint8_t { kAuto, kF32, kBF16, kInt8 };

// The type that a choice gives for weights of a format: with kAuto f32 for f32 and f16 weights,
// bf16 for bf16 and FP8 ones, int8 for MXFP4.
kernels::ActivationType activation_type(ActivationChoice choice, kernels::WeightFormat format);

}  // namespace ingot::model
