#pragma once

#include <array>

#include "base/result.h"
#include "kernels/quantize_fp8.h"
#include "kernels/quantize_mxfp4.h"
#include "kernels/target.h"

namespace ingot::quantize {

// The kernels that round rows of each dtype, chosen once for a run.
class RoundingFunctions {
 public:
  static RoundingFunctions choose(kernels::ScaleSearch search, kernels::Target target);

  // REQUIRES: dtype is kF32, kF16 or kBF16.
  kernels::QuantizeMxfp4Function mxfp4(tensor::DType dtype) const;
  kernels::QuantizeFp8Function fp8(tensor::DType dtype) const;

 private:
  std::array<kernels::QuantizeMxfp4Function, 3> mxfp4_ = {};
  std::array<kernels::QuantizeFp8Function, 3> fp8_ = {};
};

}  // namespace ingot::quantize
