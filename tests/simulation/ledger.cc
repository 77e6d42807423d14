#include "simulation/ledger.h"

#include <algorithm>
#include <string_view>

namespace ingot::simulation {

using base::error;
using scheduler::FinishReason;

base::Status Ledger::enter(const scheduler::RequestEvent& event, base::Instant now) {
  const auto found = requests_.find(event.request);
  if (found == requests_.end()) {
    return error("request {} is told of after its end", event.request);
  }
  LiveRequest& request = found->second;
  if (event.tokens.empty() && !event.report) {
    return error("request {} has an event that tells nothing", event.request);
  }
  for (const int32_t token : event.tokens) {
    if (token != request.truth.token(request.num_prompt_tokens + request.num_told)) {
      return error("request {} has a wrong token at output position {}", event.request,
                   request.num_told);
    }
    ++request.num_told;
  }
  const int32_t num_drawn = executor_.cache().request(event.request).num_drawn();
  if (request.num_told > std::min(num_drawn, request.natural_length)) {
    return error("request {} was told {} tokens of {} that were drawn and {} that it may have",
                 event.request, request.num_told, num_drawn, request.natural_length);
  }
  if (!event.report) return {};

  TRY(check_report(request, *event.report, now));
  totals_.add(*event.report);
  ++num_finished_;
  ++num_by_reason_[static_cast<size_t>(event.report->reason)];
  requests_.erase(found);
  return {};
}

base::Status Ledger::check_report(const LiveRequest& request,
                                  const scheduler::RequestReport& report, base::Instant now) const {
  const shadow::ShadowRequest& computed = executor_.cache().request(request.plan.request.id);
  TRY(check_reason(request, report, now));
  TRY(computed.check_usage(report.usage));
  if (report.usage.num_preemptions > config_.max_preemptions) {
    return error("request {} was preempted {} times, and may be {} times", computed.asked.id,
                 report.usage.num_preemptions, config_.max_preemptions);
  }
  if (computed.num_batches > 0 && !report.timings.admitted) {
    return error("request {} was computed and not admitted", computed.asked.id);
  }
  return check_timings(request, report.timings, now);
}

// That it ended for a reason which is there, with the output that goes with the reason.
base::Status Ledger::check_reason(const LiveRequest& request,
                                  const scheduler::RequestReport& report, base::Instant now) const {
  const scheduler::Request& asked = request.plan.request;
  const int32_t num_output = report.usage.num_output_tokens;
  const auto wrong = [&](std::string_view why) {
    return error("request {} ended as {} with {} tokens: {}", asked.id, name(report.reason),
                 num_output, why);
  };
  if (report.error != (report.reason == FinishReason::kError ? request.failure : "")) {
    return wrong("its error is not that of the executor");
  }
  const bool was_cut = request.stop_length >= 0;
  if (report.reason == FinishReason::kStop && was_cut) {
    return num_output == request.stop_length ? base::Status() : wrong("it was cut elsewhere");
  }
  switch (report.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      if (was_cut || request.cancelled || !request.failure.empty()) {
        return wrong("something else came before");
      }
      if (report.reason != request.natural_end || request.num_told != request.natural_length) {
        return wrong("it was not there yet, or is beyond");
      }
      break;
    case FinishReason::kCancelled:
      if (!request.cancelled) return wrong("nobody cancelled it");
      break;
    case FinishReason::kDeadline:
      if (!asked.deadline || *asked.deadline > now) return wrong("its deadline is not over");
      break;
    case FinishReason::kError:
      if (request.failure.empty()) return wrong("it did not fail");
      break;
  }
  if (num_output != request.num_told) return wrong("events told another number");
  return {};
}

base::Status Ledger::check_timings(const LiveRequest& request, const scheduler::Timings& timings,
                                   base::Instant now) const {
  const scheduler::RequestId id = request.plan.request.id;
  if (timings.arrived != request.arrived || timings.finished > now) {
    return error("request {} has the wrong time of arrival or end", id);
  }
  if (request.num_told > 0 && !timings.first_token) {
    return error("request {} has tokens and no time of the first", id);
  }
  const base::Instant admitted = timings.admitted.value_or(timings.arrived);
  const base::Instant first_token = timings.first_token.value_or(timings.finished);
  if (admitted < timings.arrived || first_token < admitted || timings.finished < first_token) {
    return error("request {} has times in the wrong order", id);
  }
  return {};
}

base::Status Ledger::check_told() const {
  for (const auto& [id, request] : requests_) {
    if (request.was_ended()) return error("request {} was ended and goes on", id);
    const shadow::ShadowRequest& computed = executor_.cache().request(id);
    if (request.num_told != computed.num_drawn()) {
      return error("request {} drew {} tokens and was told {}", id, computed.num_drawn(),
                   request.num_told);
    }
    const int32_t max_tokens = request.plan.request.max_tokens;
    if (max_tokens == 0 ? computed.num_computed == request.num_prompt_tokens
                        : request.num_told == max_tokens) {
      return error("request {} is complete and goes on", id);
    }
  }
  return {};
}

base::Status Ledger::check_stats(const scheduler::SchedulerStats& stats) const {
  const auto num_live = static_cast<int64_t>(requests_.size());
  if (num_offered_ != num_refused_ + num_live + num_finished_ ||
      stats.num_requests_added != num_offered_ - num_refused_ ||
      stats.num_requests_finished != num_finished_ ||
      stats.num_waiting + stats.num_running != num_live) {
    return error(
        "{} offered: {} refused, {} finished, {} live; by the stats {} waiting, {} running, {} "
        "finished",
        num_offered_, num_refused_, num_finished_, num_live, stats.num_waiting, stats.num_running,
        stats.num_requests_finished);
  }
  TRY(executor_.cache().check_stats(stats));
  const int32_t num_held = config_.num_pages - stats.num_free_pages - stats.num_cached_pages;
  if (stats.num_free_pages < 0 || stats.num_evictable_pages < 0 || num_held < 0 ||
      stats.num_evictable_pages > stats.num_cached_pages) {
    return error("{} free, {} cached and {} evictable pages of {}", stats.num_free_pages,
                 stats.num_cached_pages, stats.num_evictable_pages, config_.num_pages);
  }
  if (!config_.prefix_cache && (stats.num_cached_pages != 0 || stats.num_hit_tokens != 0)) {
    return error("the prefix cache is off and holds {} pages", stats.num_cached_pages);
  }
  return {};
}

base::Status Ledger::check_idle(const scheduler::SchedulerStats& stats) const {
  if (!requests_.empty()) {
    return error("nothing waits and nothing runs, and {} requests are not over", requests_.size());
  }
  return totals_.check_idle(stats, config_.num_pages);
}

}  // namespace ingot::simulation
