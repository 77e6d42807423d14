#include "scheduler/step_loop.h"

namespace ingot::scheduler {

bool StepLoop::step() {
  const Batch& batch = scheduler_.schedule(clock_.now());
  if (batch.sequences.empty()) return false;
  scheduler_.commit(executor_.execute(batch), clock_.now());
  return true;
}

}  // namespace ingot::scheduler
