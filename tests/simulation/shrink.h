#pragma once

#include <functional>
#include <vector>

#include "simulation/request_plan.h"

namespace ingot::simulation {

// Fewer and simpler requests with which something still fails.
//
// First delta debugging (Zeller and Hildebrandt, 2002) over the list: ever smaller parts are left
// out as long as the rest fails. Then each request loses what is special about it, piece by piece.
// `fails` is called up to `max_tries` times. REQUIRES: the list itself fails.
std::vector<RequestPlan> shrink(std::vector<RequestPlan> plans,
                                const std::function<bool(const std::vector<RequestPlan>&)>& fails,
                                int max_tries);

}  // namespace ingot::simulation
