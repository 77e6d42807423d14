#include "simulation/live_request.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace ingot::simulation {

LiveRequest::LiveRequest(uint64_t seed, RequestPlan its_plan, base::Instant now)
    : plan(std::move(its_plan)),
      truth(seed, plan.request.cache_salt, plan.request.prompt),
      arrived(now),
      num_prompt_tokens(static_cast<int32_t>(plan.request.prompt.size())),
      natural_length(plan.request.max_tokens) {
  const std::vector<int32_t>& stops = plan.request.stop_token_ids;
  for (int32_t i = plan.request.min_tokens; i < plan.request.max_tokens; ++i) {
    if (std::ranges::find(stops, truth.token(num_prompt_tokens + i)) == stops.end()) continue;
    natural_end = scheduler::FinishReason::kStop;
    natural_length = i;
    return;
  }
}

}  // namespace ingot::simulation
