#include "cli/options.h"

#include "base/machine.h"

namespace ingot::cli {
namespace {

model::ActivationChoice activation_choice(std::string_view name) {
  using enum model::ActivationChoice;
  if (name == "f32") return kF32;
  if (name == "bf16") return kBF16;
  return name == "int8" ? kInt8 : kAuto;
}

engine::NumericOptions::KvType kv_type(std::string_view name) {
  using enum engine::NumericOptions::KvType;
  if (name == "f32") return kF32;
  if (name == "bf16") return kBF16;
  return name == "fp8" ? kFp8 : kAuto;
}

}  // namespace

int thread_count(const CommonOptions& common) {
  return common.threads > 0 ? common.threads : base::usable_threads();
}

base::Result<engine::RunnerOptions> executor_options(const CommonOptions& common,
                                                     const ModelOptions& options) {
  engine::RunnerOptions result;
  result.numeric.activations = activation_choice(options.activations);
  result.numeric.kv_type = kv_type(options.kv_dtype);
  result.slow_kernels = options.slow_kernels;
  result.target = TRY(kernels::usable_target(common.targets));
  return result;
}

}  // namespace ingot::cli
