#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "scheduler/request.h"

namespace ingot::simulation {

// When in a step somebody calls the scheduler.
enum class Moment : uint8_t {
  kNever,
  kWaiting,    // before `schedule`, while it was in no batch yet
  kUnderWay,   // between `schedule` and `commit`
  kCommitted,  // after `commit`
};

// A request and all that will happen to it, decided beforehand.
struct RequestPlan {
  scheduler::Request request = {};
  base::Instant arrival = {};

  // The client goes away: at `cancel` of the cancel_count-th batch that the request is in, or of
  // the cancel_count-th step that it waits for.
  Moment cancel = Moment::kNever;
  int32_t cancel_count = 0;

  // Its text meets a stop string: at `stop`, once stop_length + stop_surplus tokens were told, the
  // output is cut to stop_length.
  Moment stop = Moment::kNever;
  int32_t stop_length = 0;
  int32_t stop_surplus = 0;

  // The executor fails it in its failing_batch-th batch (0: never), alone or with all others.
  int32_t failing_batch = 0;
  bool fails_whole_step = false;

  double draft_acceptance = 0;  // how probable it is that a draft is right if those before are
};

// One line that says all that is not as usual.
std::string describe(const RequestPlan& plan);

}  // namespace ingot::simulation
