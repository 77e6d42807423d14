#include "shadow/usage_totals.h"

#include <string_view>

namespace ingot::shadow {

using base::error;

void UsageTotals::add(const scheduler::RequestReport& report) {
  const scheduler::Usage& usage = report.usage;
  ++num_reports_;
  if (report.timings.admitted) num_lookup_tokens_ += usage.num_prompt_tokens;
  num_hit_tokens_ += usage.num_cached_tokens;
  num_prefill_tokens_ += usage.num_prefill_tokens;
  num_recomputed_tokens_ += usage.num_recomputed_tokens;
  num_accepted_tokens_ += usage.num_accepted_tokens;
  num_rejected_tokens_ += usage.num_draft_tokens - usage.num_accepted_tokens;
  num_preemptions_ += usage.num_preemptions;
}

base::Status UsageTotals::check_idle(const scheduler::SchedulerStats& stats,
                                     int32_t num_pages) const {
  if (stats.num_waiting != 0 || stats.num_running != 0) {
    return error("{} requests wait and {} run where nothing should", stats.num_waiting,
                 stats.num_running);
  }
  const int32_t num_lost = num_pages - stats.num_free_pages - stats.num_cached_pages;
  if (num_lost != 0) return error("nothing runs and {} pages are lost", num_lost);
  if (stats.num_evictable_pages != stats.num_cached_pages) {
    return error("nothing runs and {} cached pages are locked",
                 stats.num_cached_pages - stats.num_evictable_pages);
  }
  const auto agrees = [](std::string_view what, int64_t by_reports,
                         int64_t by_stats) -> base::Status {
    if (by_reports == by_stats) return {};
    return error("{}: {} in all reports, {} in the stats", what, by_reports, by_stats);
  };
  TRY(agrees("requests added", num_reports_, stats.num_requests_added));
  TRY(agrees("requests finished", num_reports_, stats.num_requests_finished));
  TRY(agrees("lookup tokens", num_lookup_tokens_, stats.num_lookup_tokens));
  TRY(agrees("hit tokens", num_hit_tokens_, stats.num_hit_tokens));
  TRY(agrees("prefill tokens", num_prefill_tokens_, stats.num_prefill_tokens));
  TRY(agrees("recomputed tokens", num_recomputed_tokens_, stats.num_recomputed_tokens));
  TRY(agrees("accepted tokens", num_accepted_tokens_, stats.num_accepted_tokens));
  TRY(agrees("rejected tokens", num_rejected_tokens_, stats.num_rejected_tokens));
  return agrees("preemptions", num_preemptions_, stats.num_preemptions);
}

}  // namespace ingot::shadow
