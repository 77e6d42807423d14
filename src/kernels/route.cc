#include "kernels/route.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

constexpr float kExcluded = -std::numeric_limits<float>::infinity();

float sum_of_two_largest(const float* values, int64_t count) {
  float first = kExcluded;
  float second = kExcluded;
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] > first) {
      second = first;
      first = values[i];
    } else if (values[i] > second) {
      second = values[i];
    }
  }
  return first + second;
}

// Excludes every expert outside the best topk_groups groups: a group stays while fewer than that
// many are better, or equal and before it.
void exclude_groups(float* choices, int64_t num_experts, int64_t num_groups, int64_t topk_groups) {
  CHECK(num_groups <= kGroupsMax);
  const int64_t size = num_experts / num_groups;
  const auto score = [&](int64_t group) {
    return sum_of_two_largest(choices + group * size, size);
  };
  uint64_t excluded[kGroupsMax / 64] = {};
  for (int64_t group = 0; group < num_groups; ++group) {
    const float own = score(group);
    int64_t better = 0;
    for (int64_t other = 0; other < num_groups; ++other) {
      const float theirs = score(other);
      if (theirs > own || (theirs == own && other < group)) ++better;
    }
    if (better >= topk_groups) excluded[group / 64] |= uint64_t{1} << (group % 64);
  }
  for (int64_t group = 0; group < num_groups; ++group) {
    if ((excluded[group / 64] >> (group % 64) & 1) != 0) {
      std::fill_n(choices + group * size, size, kExcluded);
    }
  }
}

void route_row(const RowOperations& rows, const RouteArgs& args, int64_t row) {
  const int64_t num_experts = args.gate.rows;
  const int64_t topk = args.routing.experts_per_token;
  float* choices = args.choices + row * num_experts;
  float* affinities = args.affinities + row * num_experts;
  rows.affinities(args.bias, num_experts, affinities, choices);
  if (args.num_groups > 1) exclude_groups(choices, num_experts, args.num_groups, args.topk_groups);
  int32_t* experts = args.routing.experts + row * topk;
  float* weights = args.routing.weights + row * topk;
  float sum = 0;
  for (int64_t k = 0; k < topk; ++k) {
    const int64_t expert = rows.argmax(choices, num_experts);
    choices[expert] = kExcluded;
    experts[k] = static_cast<int32_t>(expert);
    weights[k] = affinities[expert];
    sum += weights[k];
  }
  const float factor = args.normalize ? args.scale / (sum + 1e-20f) : args.scale;
  for (int64_t k = 0; k < topk; ++k) weights[k] *= factor;
}

}  // namespace

void affinities_reference(const float* bias, int64_t count, float* affinities, float* choices) {
  for (int64_t e = 0; e < count; ++e) {
    affinities[e] = 1.0f / (1.0f + std::exp(-affinities[e]));
    choices[e] = affinities[e] + bias[e];
  }
}

int64_t argmax_reference(const float* values, int64_t count) {
  int64_t best = 0;
  float best_value = kExcluded;
  for (int64_t i = 0; i < count; ++i) {
    if (values[i] > best_value) {
      best = i;
      best_value = values[i];
    }
  }
  return best;
}

void route(const ExecutionContext& context, const RouteArgs& args) {
  args.linear(context, {.x = {.type = ActivationType::kF32,
                              .rows = args.rows,
                              .cols = args.gate.cols,
                              .data = args.x},
                        .weight = args.gate,
                        .y = args.affinities,
                        .y_stride = args.gate.rows});
  const base::IndexRange range = context.share(args.rows);
  for (int64_t row = range.begin; row < range.end; ++row) route_row(context.rows(), args, row);
  context.barrier();
}

}  // namespace ingot::kernels
