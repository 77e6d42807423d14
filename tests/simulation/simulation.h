#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "base/result.h"
#include "scheduler/scheduler.h"
#include "simulation/journal.h"
#include "simulation/ledger.h"
#include "simulation/live_request.h"
#include "simulation/request_plan.h"
#include "simulation/setup.h"
#include "simulation/shadow_executor.h"
#include "simulation/virtual_clock.h"

namespace ingot::simulation {

// How far a simulation is; may lie in memory that another process reads.
struct Standing {
  int64_t num_offered = 0;
  int64_t num_finished = 0;  // or refused
  int64_t num_steps = 0;
};

// What a simulation that found nothing did.
struct Outcome {
  scheduler::SchedulerStats stats = {};
  std::array<int64_t, 5> num_by_reason = {};  // [FinishReason]
  int64_t num_refused = 0;
  uint64_t fingerprint = 0;  // of every batch, call and event
};

// The product's scheduler under a virtual clock, with an executor that watches, clients that leave,
// and every rule checked after every step.
class Simulation {
 public:
  using Plans = std::function<std::optional<RequestPlan>()>;

  // `plans` gives the requests by rising arrival; `standing` is kept up to date. All must outlive
  // it.
  Simulation(const Setup& setup, Plans plans, Journal& journal, Standing& standing);

  // Until no request is left. The error is the first rule that was broken, and in which step.
  base::Result<Outcome> run();

 private:
  base::Status run_all();
  base::Status step();
  base::Status offer_arrivals();
  base::Status check_batch(const scheduler::Batch& batch) const;
  base::Status check_pages_in_use() const;
  base::Status check_nobody_starves(const scheduler::Batch& batch);
  base::Status enter_events();

  // Who leaves or meets a stop string at this moment of this step.
  base::Status leave(Moment moment);
  base::Status leave_queue(Moment moment);
  base::Status cancel(scheduler::RequestId id, Moment moment);
  base::Status stop(scheduler::RequestId id, Moment moment);
  base::Status check_gone(scheduler::RequestId id, Moment moment);

  const Setup& setup_;
  Plans plans_;
  Journal& journal_;
  Standing& standing_;

  VirtualClock clock_;
  LiveRequests requests_;
  ShadowExecutor executor_;
  Ledger ledger_;
  scheduler::Scheduler scheduler_;
  std::optional<RequestPlan> next_;
};

}  // namespace ingot::simulation
