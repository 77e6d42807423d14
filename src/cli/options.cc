#include "cli/options.h"

#include "base/machine.h"

namespace ingot::cli {
int thread_count(const CommonOptions& common) {
  return common.threads > 0 ? common.threads : base::usable_threads();
}

base::Result<engine::ExecutorOptions> executor_options(const CommonOptions& common,
                                                       const ModelOptions& options) {
  using KvType = engine::NumericOptions::KvType;
  using model::ActivationChoice;
  engine::ExecutorOptions result;
  result.numeric.activations = options.activations == "auto"  ? ActivationChoice::kAuto
                               : options.activations == "f32" ? ActivationChoice::kF32
                                                              : ActivationChoice::kBF16;
  result.numeric.kv_type = options.kv_dtype == "auto"  ? KvType::kAuto
                           : options.kv_dtype == "f32" ? KvType::kF32
                                                       : KvType::kBF16;
  result.target = TRY(kernels::usable_target(common.targets));
  result.threads = thread_count(common);
  return result;
}

std::string grouped(int64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    const size_t left = digits.size() - i;
    if (i > 0 && left % 3 == 0 && digits[i - 1] != '-') text += ',';
    text += digits[i];
  }
  return text;
}

}  // namespace ingot::cli
