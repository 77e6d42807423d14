#pragma once

#include <cstdint>
#include <string>

#include "simulation/setup.h"
#include "simulation/trial.h"

namespace ingot::simulation {

// A failed trial of `num_requests` as somebody wants to read it who looks for the bug: setup, the
// fewest requests that were found to fail, every step of theirs, and what went wrong.
std::string investigate(const Setup& setup, int64_t num_requests, const TrialReport& failed,
                        int max_tries);

}  // namespace ingot::simulation
