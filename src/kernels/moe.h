#pragma once

#include <cstdint>
#include <span>

#include "kernels/activations.h"
#include "kernels/execution_context.h"
#include "kernels/route.h"
#include "kernels/variant.h"
#include "kernels/weight.h"

namespace ingot::kernels {

// One gated feed-forward network: down (silu(gate x) * up x).
struct MlpWeights {
  Weight gate;  // [intermediate, hidden]
  Weight up;    // [intermediate, hidden]
  Weight down;  // [hidden, intermediate]
};

// out[row] = sum over k of weights[row, k] * E_k(x[row]) in the routing's order, k = 0 first.
struct MoeArgs {
  Activations x;    // [rows, hidden]
  Routing routing;  // of the same rows
  std::span<const MlpWeights> experts;
  float* out;  // [rows, hidden], overwritten

  // Workspace; a pair is a row and one of its experts.
  float* gated;    // [pairs, 2 * intermediate]
  void* encoded;   // [pairs] encoded rows
  int32_t* order;  // [pairs + experts + 1]
  float* sums;     // [team, pairs, kMoeSlabColumns]
};

// Columns of the output that a member sums at a time.
inline constexpr int64_t kMoeSlabColumns = 64;

struct MoeUse {
  struct Kind {
    WeightFormat weight;
    ActivationType activation;
    WeightLayout layout = WeightLayout::kRows;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
  int64_t hidden;
  int64_t intermediate;
  int64_t num_experts;
};

// Collective. REQUIRES: every expert has the same shapes and the format selected for.
using MoeFunction = void (*)(const ExecutionContext& context, const MoeArgs& args);
using MoeVariant = Variant<MoeFunction, MoeUse>;

std::span<const MoeVariant> moe_variants();

}  // namespace ingot::kernels
