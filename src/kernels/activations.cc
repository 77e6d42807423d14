#include "kernels/activations.h"

#include <cmath>
#include <limits>

#include "kernels/activation_rows.h"

namespace ingot::kernels {

void Int8ActivationRow::store_block(void* row, int64_t, int64_t first, const float* values,
                                    int64_t count) {
  Int8Block& block = static_cast<Int8Block*>(row)[first / kInt8BlockValues];
  float largest = 0;
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    largest = std::max(largest, std::abs(values[i]));
    finite &= std::isfinite(values[i]);
  }
  block.scale = finite ? largest / 127 : std::numeric_limits<float>::quiet_NaN();
  block.excess = 0;
  const bool encodes = finite && block.scale > 0;
  for (int64_t i = 0; i < kInt8BlockValues; ++i) {
    float steps = 0;
    // The clamp matters where the scale is subnormal and thus far from exact.
    if (encodes && i < count) {
      steps = std::clamp(std::nearbyint(values[i] / block.scale), -127.0f, 127.0f);
    }
    block.values[i] = static_cast<int8_t>(steps);
    block.excess += 12 * block.values[i];
  }
}

Activations encode_activations(const ExecutionContext& context, const float* x, int64_t rows,
                               int64_t cols, ActivationType type, void* buffer) {
  const auto copy = [&](int64_t row, int64_t first, int64_t count, float* out) {
    std::copy_n(x + row * cols + first, count, out);
  };
  switch (type) {
    case ActivationType::kF32:
      return {.type = type, .rows = rows, .cols = cols, .data = x};
    case ActivationType::kBF16:
      return encode_rows<BF16ActivationRow>(context, rows, cols, buffer, copy);
    case ActivationType::kInt8:
      return encode_rows<Int8ActivationRow>(context, rows, cols, buffer, copy);
  }
  return {};
}

}  // namespace ingot::kernels
