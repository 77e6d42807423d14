#include "kernels/target.h"

#include <algorithm>
#include <array>

namespace ingot::kernels {
namespace {

constexpr std::array kTargets = {Target::kReference, Target::kAvx2, Target::kAvx512};

}  // namespace

std::string_view name(Target target) {
  switch (target) {
    case Target::kReference:
      return "reference";
    case Target::kAvx2:
      return "avx2";
    case Target::kAvx512:
      return "avx512";
  }
  return "";
}

std::span<const Target> built_targets() {
#if defined(__x86_64__)
  static constexpr std::array kBuilt = {Target::kReference, Target::kAvx2};
#else
  static constexpr std::array kBuilt = {Target::kReference};
#endif
  return kBuilt;
}

Target detect_target() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("f16c");
  const bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vnni");
  if (avx2 && avx512) return Target::kAvx512;
  if (avx2) return Target::kAvx2;
#endif
  return Target::kReference;
}

base::Result<Target> usable_target(std::string_view forced) {
  const Target detected = std::min(detect_target(), built_targets().back());
  if (forced.empty()) return detected;
  for (const Target target : kTargets) {
    if (name(target) != forced) continue;
    if (target > detected) {
      return base::error(
          "INGOT_TARGETS={}: processor and build together have only {}; unset the "
          "variable",
          forced, name(detected));
    }
    return target;
  }
  return base::error("INGOT_TARGETS={}: unknown; use reference, avx2 or avx512", forced);
}

}  // namespace ingot::kernels
