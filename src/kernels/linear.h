#pragma once

#include <span>

#include "kernels/activations.h"
#include "kernels/execution_context.h"
#include "kernels/variant.h"
#include "kernels/weight.h"

namespace ingot::kernels {

enum class Output : uint8_t {
  kStore,  // y = result
  kAdd,    // y += result
};

// y = x W^T, or y += x W^T.
struct LinearArgs {
  Activations x;     // [rows, in]
  Weight weight;     // [out, in]
  float* y;          // [rows, out], rows y_stride apart
  int64_t y_stride;  // in floats
  Output output = Output::kStore;
};

struct LinearUse {
  struct Kind {
    WeightFormat weight;
    ActivationType activation;
    WeightLayout layout = WeightLayout::kRows;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
  int64_t out;
  int64_t in;
};

// Collective. REQUIRES: x.cols == weight.cols; formats are those that it was selected for.
using LinearFunction = void (*)(const ExecutionContext& context, const LinearArgs& args);
using LinearVariant = Variant<LinearFunction, LinearUse>;

// Every variant of this build, fastest first, reference last.
std::span<const LinearVariant> linear_variants();

// The layout that the fastest variant reads which a target has for these types.
WeightLayout fastest_layout(WeightFormat weight, ActivationType activation, Target allowed);

}  // namespace ingot::kernels
