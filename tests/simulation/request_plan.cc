#include "simulation/request_plan.h"

#include <array>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace ingot::simulation {
namespace {

std::string_view name(Moment moment) {
  constexpr std::array<std::string_view, 4> kNames = {"never", "waiting", "under way", "committed"};
  return kNames[static_cast<size_t>(moment)];
}

}  // namespace

std::string describe(const RequestPlan& plan) {
  const scheduler::Request& request = plan.request;
  std::string text = fmt::format("request {} arrives at {:.6f} s: prompt of {}, max_tokens {}",
                                 request.id, base::seconds(plan.arrival.time_since_epoch()),
                                 request.prompt.size(), request.max_tokens);
  const auto add = [&text]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
    text += ", ";
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
  };
  if (request.min_tokens > 0) add("min_tokens {}", request.min_tokens);
  if (!request.stop_token_ids.empty()) add("stops at {}", request.stop_token_ids);
  if (request.priority != 0) add("priority {}", request.priority);
  if (request.deadline) {
    add("deadline at {:.6f} s", base::seconds(request.deadline->time_since_epoch()));
  }
  if (!request.cache_salt.empty()) add("salt '{}'", request.cache_salt);
  if (!request.reads_prefix_cache) add("reads no cached prefix");
  if (request.wants_prompt_logits) add("wants prompt logits");
  if (request.max_draft_tokens != INT32_MAX) add("max_draft_tokens {}", request.max_draft_tokens);
  if (plan.cancel != Moment::kNever) {
    add("cancelled when {}, count {}", name(plan.cancel), plan.cancel_count);
  }
  if (plan.stop != Moment::kNever) {
    add("cut to {} when {} with {} more", plan.stop_length, name(plan.stop), plan.stop_surplus);
  }
  if (plan.failing_batch > 0) {
    add("fails {} in its batch {}", plan.fails_whole_step ? "with all others" : "alone",
        plan.failing_batch);
  }
  add("drafts right {:.2f}", plan.draft_acceptance);
  return text + fmt::format("\n  prompt {}", request.prompt);
}

}  // namespace ingot::simulation
