#pragma once

#include "kernels/activation_rows.h"
#include "kernels/dot_reference.h"
#include "kernels/linear.h"
#include "kernels/weight_rows.h"

namespace ingot::kernels {

// The plain form: W and A read rows of the weight and of the activations.
template <typename W, typename A>
void linear_reference(const ExecutionContext& context, const LinearArgs& args) {
  const base::IndexRange range = context.share(args.weight.rows);
  for (int64_t o = range.begin; o < range.end; ++o) {
    const W weight_row(args.weight, o);
    for (int64_t row = 0; row < args.x.rows; ++row) {
      const float value = dot_reference(weight_row, A(args.x, row), args.weight.cols);
      float& y = args.y[row * args.y_stride + o];
      y = args.output == Output::kAdd ? y + value : value;
    }
  }
  context.barrier();
}

}  // namespace ingot::kernels
