#pragma once

#include <span>
#include <string>
#include <string_view>

#include "kernels/ledger.h"
#include "kernels/target.h"

namespace ingot::kernels {

// One implementation of an operation. `Use` is what selection knows of a place that needs one; its
// nested `Kind` (formats) says which variants belong there at all. `refuses` then says in a few
// words why a variant of that kind cannot take the shape ("1000 columns, not a multiple of 32"), or
// nothing when it can.
template <typename Function, typename Use>
struct Variant {
  std::string_view name;
  Target target;
  typename Use::Kind kind;
  std::string (*refuses)(const Use& use);
  Function run;
};

// For variants that take every shape.
template <typename Use>
std::string refuses_nothing(const Use&) {
  return {};
}

// The first variant of the list (fastest first) of the use's kind that the target allows and that
// does not refuse; null when there is none. Says in `entry` which it is and why none of those
// before it. Called at load; what it returns is kept, so that nothing is decided again in a step.
template <typename Function, typename Use>
const Variant<Function, Use>* select_variant(std::span<const Variant<Function, Use>> variants,
                                             const Use& use, Target allowed, LedgerEntry& entry) {
  for (const auto& variant : variants) {
    if (!(variant.kind == use.kind)) continue;
    std::string reason = variant.target > allowed ? "needs " + std::string(name(variant.target))
                                                  : variant.refuses(use);
    if (reason.empty()) {
      entry.variant = variant.name;
      entry.target = variant.target;
      if (variant.target < allowed && entry.why_not_faster.empty()) {
        entry.why_not_faster = "no " + std::string(name(allowed)) + " kernel of this kind yet";
      }
      return &variant;
    }
    if (!entry.why_not_faster.empty()) entry.why_not_faster += "; ";
    entry.why_not_faster += std::string(variant.name) + ": " + reason;
  }
  return nullptr;
}

}  // namespace ingot::kernels
