#include "simulation/shrink.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace ingot::simulation {
namespace {

using Fails = std::function<bool(const std::vector<RequestPlan>&)>;

// Each makes a plan simpler, or leaves it as it is.
constexpr std::array<void (*)(RequestPlan&), 16> kSimplifications = {
    [](RequestPlan& plan) { plan.cancel = Moment::kNever; },
    [](RequestPlan& plan) { plan.stop = Moment::kNever; },
    [](RequestPlan& plan) { plan.failing_batch = 0; },
    [](RequestPlan& plan) { plan.request.deadline.reset(); },
    [](RequestPlan& plan) { plan.request.priority = 0; },
    [](RequestPlan& plan) { plan.request.stop_token_ids.clear(); },
    [](RequestPlan& plan) { plan.request.min_tokens = 0; },
    [](RequestPlan& plan) { plan.request.cache_salt.clear(); },
    [](RequestPlan& plan) { plan.request.wants_prompt_logits = false; },
    [](RequestPlan& plan) { plan.request.reads_prefix_cache = true; },
    [](RequestPlan& plan) { plan.request.max_draft_tokens = INT32_MAX; },
    [](RequestPlan& plan) { plan.draft_acceptance = 1; },
    [](RequestPlan& plan) { plan.arrival = {}; },
    [](RequestPlan& plan) { plan.request.max_tokens /= 2; },
    [](RequestPlan& plan) { plan.request.prompt.resize((plan.request.prompt.size() + 1) / 2); },
    [](RequestPlan& plan) {
      if (plan.request.prompt.size() > 1) plan.request.prompt.pop_back();
    },
};

// Arrivals rise along a list.
void sort_by_arrival(std::vector<RequestPlan>& plans) {
  std::ranges::stable_sort(plans, {}, &RequestPlan::arrival);
}

std::vector<RequestPlan> without(const std::vector<RequestPlan>& plans, size_t begin, size_t end) {
  std::vector<RequestPlan> rest(plans.begin(), plans.begin() + static_cast<ptrdiff_t>(begin));
  rest.insert(rest.end(), plans.begin() + static_cast<ptrdiff_t>(end), plans.end());
  return rest;
}

void leave_out(std::vector<RequestPlan>& plans, const Fails& fails, int& tries) {
  for (size_t part = (plans.size() + 1) / 2; part > 0 && tries > 0;) {
    bool shorter = false;
    // The later ones first: most of those that came before a failure had a part in it.
    for (size_t end = plans.size(); end > 0 && tries > 0;) {
      const size_t begin = end - std::min(end, part);
      std::vector<RequestPlan> rest = without(plans, begin, end);
      end = begin;
      if (rest.empty()) continue;
      --tries;
      if (!fails(rest)) continue;
      plans = std::move(rest);
      shorter = true;
    }
    if (part == 1 && !shorter) return;
    part = std::min(part == 1 ? 1 : part / 2, std::max<size_t>(plans.size() / 2, 1));
  }
}

bool simplify(std::vector<RequestPlan>& plans, const Fails& fails, int& tries) {
  bool simpler = false;
  for (size_t i = 0; i < plans.size(); ++i) {
    for (const auto& simplification : kSimplifications) {
      std::vector<RequestPlan> changed = plans;
      simplification(changed[i]);
      if (describe(changed[i]) == describe(plans[i])) continue;
      sort_by_arrival(changed);
      if (tries-- <= 0) return false;
      if (!fails(changed)) continue;
      plans = std::move(changed);
      simpler = true;
    }
  }
  return simpler;
}

}  // namespace

std::vector<RequestPlan> shrink(std::vector<RequestPlan> plans, const Fails& fails, int max_tries) {
  int tries = max_tries;
  leave_out(plans, fails, tries);
  while (tries > 0 && simplify(plans, fails, tries)) leave_out(plans, fails, tries);
  return plans;
}

}  // namespace ingot::simulation
