#include "simulation/investigation.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "simulation/shrink.h"
#include "simulation/workload.h"

namespace ingot::simulation {
namespace {

constexpr size_t kHistoryLines = 300;

// What came last explains the most.
std::string last_lines(const std::string& text) {
  size_t begin = text.size();
  for (size_t line = 0; line <= kHistoryLines && begin != std::string::npos && begin > 0; ++line) {
    begin = text.rfind('\n', begin - 1);
  }
  if (begin == std::string::npos || begin == 0) return text;
  return fmt::format("(the last {} lines)\n", kHistoryLines) + text.substr(begin + 1);
}

}  // namespace

std::string investigate(const Setup& setup, int64_t num_requests, const TrialReport& failed,
                        int max_tries) {
  // What had not arrived had no part in it.
  Workload workload(setup, num_requests);
  std::vector<RequestPlan> plans;
  while (static_cast<int64_t>(plans.size()) < failed.standing.num_offered) {
    plans.push_back(*workload.next());
  }
  const auto fails = [&](const std::vector<RequestPlan>& list) {
    return !run_trial(setup, plans_of(list)).outcome;
  };
  std::string text =
      fmt::format("seed {} fails:\n{}{}\n", setup.seed, failed.text, describe(setup));
  if (plans.empty() || !fails(plans)) {
    return text + "It does not fail with the requests that had arrived.\n";
  }
  plans = shrink(std::move(plans), fails, max_tries);
  text +=
      fmt::format("The same with {} of {} requests:\n", plans.size(), failed.standing.num_offered);
  for (const RequestPlan& plan : plans) text += describe(plan) + '\n';
  return text + last_lines(run_trial(setup, plans_of(plans), Telling::kHistory).text);
}

}  // namespace ingot::simulation
