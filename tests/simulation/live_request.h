#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "scheduler/request.h"
#include "simulation/continuation.h"
#include "simulation/request_plan.h"

namespace ingot::simulation {

// A request that was added and not reported yet, as the simulation knows it to be.
struct LiveRequest {
  LiveRequest(uint64_t seed, RequestPlan its_plan, base::Instant now);

  RequestPlan plan;
  Continuation truth;
  base::Instant arrived;
  int32_t num_prompt_tokens = 0;

  // How it ends if nothing comes between, and with how many output tokens.
  scheduler::FinishReason natural_end = scheduler::FinishReason::kLength;
  int32_t natural_length = 0;

  std::string failure = {};  // not empty: the executor gave this error

  // What its events told, and what was called.
  int32_t num_told = 0;
  int32_t num_steps_waited = 0;
  bool cancelled = false;
  int32_t stop_length = -1;  // not negative: stop() was called with it

  // Steps in a row in which neither it nor anybody who goes before it computed a row.
  int32_t num_idle_steps = 0;

  // Somebody called for its end, or it failed.
  bool was_ended() const { return cancelled || stop_length >= 0 || !failure.empty(); }
};

// By id, which is also the order of arrival.
using LiveRequests = std::map<scheduler::RequestId, LiveRequest>;

}  // namespace ingot::simulation
