#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "scheduler/scheduler.h"

namespace ingot::simulation {

// One simulated installation: what the scheduler is told, how fast the machine is, and how crowded.
struct Setup {
  uint64_t seed = 0;
  scheduler::SchedulerConfig config = {};

  // A step takes step_cost + rows * row_cost + drafts of its deepest sequence * draft_cost.
  base::Duration step_cost = {};
  base::Duration row_cost = {};
  base::Duration draft_cost = {};

  base::Duration mean_gap = {};  // between arrivals
  // Most requests want up to as many tokens: long outputs are what runs out of pages.
  int32_t usual_max_tokens = 0;
  // Arrivals wait outside while as many are inside, so that memory stays bounded.
  int32_t max_outstanding = 0;
};

// From a pool with just the pages of one long request to a roomy one, with and without speculation
// and prefix cache, idle and crowded.
Setup draw_setup(uint64_t seed);

std::string describe(const Setup& setup);

}  // namespace ingot::simulation
