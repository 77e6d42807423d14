#include "kernels/activations.h"

#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/row_operations.h"
#include "tensor/float16.h"

namespace ingot::kernels {
namespace {

// Values that are computed and encoded at once: few calls, and all in the nearest cache.
constexpr int64_t kRunValues = 8 * kInt8BlockValues;

// Calls work(row, first, count) for a member's share of all rows, in runs of whole blocks.
template <typename Work>
void share_runs(const ExecutionContext& context, int64_t rows, int64_t cols, const Work& work) {
  const int64_t runs = (cols + kRunValues - 1) / kRunValues;
  const base::IndexRange range = context.share(rows * runs);
  for (int64_t item = range.begin; item < range.end; ++item) {
    const int64_t first = item % runs * kRunValues;
    work(item / runs, first, std::min(kRunValues, cols - first));
  }
  context.barrier();
}

void encode_int8_block(const float* values, int64_t count, Int8Block& block) {
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

float silu(float x) { return x / (1.0f + std::exp(-x)); }

}  // namespace

Activations encode_activations(const ExecutionContext& context, const float* x, int64_t rows,
                               int64_t cols, ActivationType type, void* buffer) {
  if (type == ActivationType::kF32) return {.type = type, .rows = rows, .cols = cols, .data = x};
  const EncodeRow encode = context.rows().encode(type);
  const int64_t row_bytes = activation_row_bytes(type, cols);
  share_runs(context, rows, cols, [&](int64_t row, int64_t first, int64_t count) {
    encode(x + row * cols + first, count,
           static_cast<std::byte*>(buffer) + row * row_bytes + activation_row_bytes(type, first));
  });
  return {.type = type, .rows = rows, .cols = cols, .data = buffer};
}

void encode_bf16_reference(const float* values, int64_t count, std::byte* out) {
  std::transform(values, values + count, reinterpret_cast<tensor::BFloat16*>(out), tensor::to_bf16);
}

void encode_int8_reference(const float* values, int64_t count, std::byte* out) {
  auto* blocks = reinterpret_cast<Int8Block*>(out);
  for (int64_t first = 0; first < count; first += kInt8BlockValues) {
    encode_int8_block(values + first, std::min(kInt8BlockValues, count - first), *blocks++);
  }
}

Activations silu_multiply(const ExecutionContext& context, float* gate, const float* up,
                          int64_t rows, int64_t cols, ActivationType type, void* buffer) {
  const SiluMultiplyRow activate = context.rows().silu_multiply;
  if (type == ActivationType::kF32) {
    share_runs(context, rows, cols, [&](int64_t row, int64_t first, int64_t count) {
      const int64_t at = row * cols + first;
      activate(gate + at, up + at, count, gate + at);
    });
    return {.type = type, .rows = rows, .cols = cols, .data = gate};
  }
  const EncodeRow encode = context.rows().encode(type);
  const int64_t row_bytes = activation_row_bytes(type, cols);
  share_runs(context, rows, cols, [&](int64_t row, int64_t first, int64_t count) {
    const int64_t at = row * cols + first;
    float values[kRunValues];
    activate(gate + at, up + at, count, values);
    encode(values, count,
           static_cast<std::byte*>(buffer) + row * row_bytes + activation_row_bytes(type, first));
  });
  return {.type = type, .rows = rows, .cols = cols, .data = buffer};
}

void silu_multiply_row_reference(const float* gate, const float* up, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = silu(gate[i]) * up[i];
}

}  // namespace ingot::kernels
