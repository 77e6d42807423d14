#pragma once

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/linear.h"

namespace ingot::kernels {

// Most groups of experts that a router may have.
inline constexpr int64_t kGroupsMax = 1024;

// The experts of each row and their weights, in descending order of choice.
struct Routing {
  int64_t experts_per_token = 0;
  int32_t* experts = nullptr;  // [rows, experts_per_token]
  float* weights = nullptr;    // [rows, experts_per_token]
};

// Auxiliary-loss-free routing (DeepSeek-V3, 2024, section 2.1.2): affinity = sigmoid(x . gate_e);
// choice = affinity + bias selects, within the topk_groups groups whose two largest choices sum
// highest; a chosen expert's weight is its affinity, divided by the chosen ones' sum if
// `normalize`, times `scale`. Of equal choices the lower expert comes first. All in f32.
struct RouteArgs {
  const float* x;  // [rows, hidden], f32 whatever other layers multiply in
  int64_t rows;
  Weight gate;            // [num_experts, hidden]
  LinearFunction linear;  // selected for gate and f32 activations
  const float* bias;      // [num_experts]
  int64_t num_groups;
  int64_t topk_groups;
  bool normalize;
  float scale;
  float* choices;     // workspace [rows, num_experts]
  float* affinities;  // workspace [rows, num_experts]
  Routing routing;
};

// The two steps of it that go over all experts of a row.
//
// affinities[e], a logit, becomes its sigmoid, and choices[e] = affinities[e] + bias[e].
using AffinityRow = void (*)(const float* bias, int64_t count, float* affinities, float* choices);
void affinities_reference(const float* bias, int64_t count, float* affinities, float* choices);
void affinities_avx2(const float* bias, int64_t count, float* affinities, float* choices);

// Index of the largest of `count` values, the first of equals. NaN never wins; with nothing but NaN
// and -inf the answer is 0, so that an index is always valid.
using ArgmaxRow = int64_t (*)(const float* values, int64_t count);
int64_t argmax_reference(const float* values, int64_t count);
int64_t argmax_avx2(const float* values, int64_t count);

// Collective.
void route(const ExecutionContext& context, const RouteArgs& args);

}  // namespace ingot::kernels
