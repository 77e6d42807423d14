#include "kernels/rope.h"

#include <cmath>

namespace ingot::kernels {

void rope_table(const ExecutionContext& context, const BatchRows& rows, const double* frequencies,
                double amplitude, int64_t dim, float* out) {
  const base::IndexRange range = context.share(rows.count);
  for (int64_t row = range.begin; row < range.end; ++row) {
    float* table = out + row * dim;
    for (int64_t j = 0; j < dim / 2; ++j) {
      const double angle = rows.positions[row] * frequencies[j];
      table[j] = static_cast<float>(amplitude * std::cos(angle));
      table[dim / 2 + j] = static_cast<float>(amplitude * std::sin(angle));
    }
  }
  context.barrier();
}

void rotate_row_reference(float* values, const float* table, int64_t dim, RopeStyle style) {
  const int64_t half = dim / 2;
  const int64_t step = style == RopeStyle::kInterleaved ? 2 : 1;
  const int64_t partner = style == RopeStyle::kInterleaved ? 1 : half;
  for (int64_t j = 0; j < half; ++j) {
    float& first = values[j * step];
    float& second = values[j * step + partner];
    const float a = first;
    const float b = second;
    first = a * table[j] - b * table[half + j];
    second = a * table[half + j] + b * table[j];
  }
}

}  // namespace ingot::kernels
