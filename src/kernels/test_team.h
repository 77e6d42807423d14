#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/thread_team.h"
#include "kernels/execution_context.h"
#include "kernels/row_operations.h"
#include "tensor/float16.h"

// What the kernels' tests share: running a collective operation, and numbers to run it on.
namespace ingot::kernels {

template <typename Operation>
void run_on_team(int size, const Operation& operation, Target target = Target::kReference) {
  base::ThreadTeam team(size);
  const RowOperations& rows = row_operations(target);
  team.run([&](int member) { operation(ExecutionContext(team, member, rows)); });
}

// The instruction sets of this build that this processor has.
inline std::vector<Target> usable_targets() {
  std::vector<Target> usable;
  for (const Target target : built_targets()) {
    if (target <= detect_target()) usable.push_back(target);
  }
  return usable;
}

// Close to normal values; another name, other values.
inline std::vector<float> random_values(const std::string& name, int64_t count, double scale = 1) {
  const base::RandomStream stream = base::random_stream(7, name);
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(scale * stream.normal(static_cast<uint64_t>(i))));
  }
  return values;
}

inline std::vector<tensor::BFloat16> rounded_to_bf16(const std::vector<float>& values) {
  std::vector<tensor::BFloat16> rounded;
  for (const float value : values) rounded.push_back(tensor::to_bf16(value));
  return rounded;
}

inline std::vector<tensor::Float16> rounded_to_f16(const std::vector<float>& values) {
  std::vector<tensor::Float16> rounded;
  for (const float value : values) rounded.push_back(tensor::to_f16(value));
  return rounded;
}

// The same values after a trip through a narrower type.
template <typename T>
std::vector<float> widened(const std::vector<T>& values) {
  std::vector<float> wide;
  for (const T value : values) wide.push_back(tensor::to_f32(value));
  return wide;
}

}  // namespace ingot::kernels
