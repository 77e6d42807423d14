#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/clock.h"
#include "engine/engine_request.h"
#include "soak/plan_pool.h"

namespace ingot::soak {

// One submission of a plan: what happens to it that must not change its answer, but may end it.
struct Offer {
  // What makes the engine refuse it.
  enum class Flaw : uint8_t {
    kNone,
    kEmptyPrompt,
    kUnknownId,
    kTooLong,
    kNegativeMaxTokens,
    kMinAboveMaxTokens,
    kUnknownStopId,
    kEmptyStopString,
    kTemperature,
    kTopP,
  };
  // When its client goes away.
  enum class Leave : uint8_t { kNever, kAtOnce, kAfterTokens, kAfterDelay, kLongAfterItsEnd };

  size_t plan = 0;
  Flaw flaw = Flaw::kNone;
  Leave leave = Leave::kNever;
  size_t leave_tokens = 0;
  base::Duration leave_delay = {};
  std::optional<base::Duration> time_limit = {};  // until its deadline
  int32_t priority = 0;
  std::string cache_salt = {};
  int32_t max_draft_tokens = INT32_MAX;
};

// Drawn from the seed and its number.
Offer draw_offer(uint64_t seed, uint64_t number, size_t num_plans);

// What is submitted.
engine::EngineRequest request_of(const Offer& offer, const PlanPool& plans,
                                 const PlanLimits& limits, base::Instant now);

}  // namespace ingot::soak
