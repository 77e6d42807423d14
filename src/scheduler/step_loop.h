#pragma once

#include "base/clock.h"
#include "scheduler/executor.h"
#include "scheduler/scheduler.h"

namespace ingot::scheduler {

// One step after another: schedule, execute, commit. Whoever owns the thread calls it; the clock
// may be virtual.
class StepLoop {
 public:
  // All must outlive it.
  StepLoop(Scheduler& scheduler, Executor& executor, const base::Clock& clock)
      : scheduler_(scheduler), executor_(executor), clock_(clock) {}

  // False: there was nothing to compute.
  bool step();

 private:
  Scheduler& scheduler_;
  Executor& executor_;
  const base::Clock& clock_;
};

}  // namespace ingot::scheduler
