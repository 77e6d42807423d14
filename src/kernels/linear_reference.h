#pragma once

#include "kernels/dot_reference.h"
#include "kernels/linear.h"

namespace ingot::kernels {

// The plain form: W and A are the element types of weight and activations.
template <typename W, typename A>
void linear_reference(const ExecutionContext& context, const LinearArgs& args) {
  const auto* weight = static_cast<const W*>(args.weight.data);
  const auto* x = static_cast<const A*>(args.x.data);
  const int64_t in = args.weight.cols;
  const base::IndexRange range = context.share(args.weight.rows);
  for (int64_t o = range.begin; o < range.end; ++o) {
    for (int64_t row = 0; row < args.x.rows; ++row) {
      const float value = dot_reference(weight + o * in, x + row * in, in);
      float& y = args.y[row * args.y_stride + o];
      y = args.output == Output::kAdd ? y + value : value;
    }
  }
  context.barrier();
}

}  // namespace ingot::kernels
