#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace ingot::kernels {

// Levels of the instruction set that variants are written for, slowest first. kAvx2 means AVX2, FMA
// and F16C; kAvx512 means F, BW, VL, DQ and VNNI on top.
enum class Target { kReference, kAvx2, kAvx512 };

std::string_view name(Target target);

// The levels for which this build has kernels, slowest first.
std::span<const Target> built_targets();

// The highest level that this processor and its kernel support.
Target detect_target();

// The level that variants may use: what the processor has, or the lower one that `forced` names
// (the value of INGOT_TARGETS; empty means no limit).
// Errors: an unknown name, or a level that the processor lacks.
base::Result<Target> usable_target(std::string_view forced);

}  // namespace ingot::kernels
