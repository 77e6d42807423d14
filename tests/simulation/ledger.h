#pragma once

#include <array>
#include <cstdint>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/scheduler.h"
#include "shadow/usage_totals.h"
#include "simulation/live_request.h"
#include "simulation/shadow_executor.h"

namespace ingot::simulation {

// The books of one simulation: who was offered and how each ended, what the events told, and
// whether the scheduler's own counts agree. Errors are violations.
class Ledger {
 public:
  // All must outlive it.
  Ledger(const scheduler::SchedulerConfig& config, LiveRequests& requests,
         const ShadowExecutor& executor)
      : config_(config), requests_(requests), executor_(executor) {}

  void offered() { ++num_offered_; }
  void refused() { ++num_refused_; }

  // Events come in order, tell what is true, and end once. A request that ended leaves `requests`.
  base::Status enter(const scheduler::RequestEvent& event, base::Instant now);

  // After a commit: what was drawn is told, and who drew its last token has ended.
  base::Status check_told() const;

  // At any time between two steps: the counts of the scheduler against those of the executor.
  base::Status check_stats(const scheduler::SchedulerStats& stats) const;

  // When nothing waits and nothing runs: nothing is held, and the reports add up to the stats.
  base::Status check_idle(const scheduler::SchedulerStats& stats) const;

  int64_t num_offered() const { return num_offered_; }
  int64_t num_refused() const { return num_refused_; }
  int64_t num_finished() const { return num_finished_; }
  // [FinishReason]
  const std::array<int64_t, 5>& num_by_reason() const { return num_by_reason_; }

 private:
  base::Status check_report(const LiveRequest& request, const scheduler::RequestReport& report,
                            base::Instant now) const;
  base::Status check_reason(const LiveRequest& request, const scheduler::RequestReport& report,
                            base::Instant now) const;
  base::Status check_timings(const LiveRequest& request, const scheduler::Timings& timings,
                             base::Instant now) const;

  const scheduler::SchedulerConfig& config_;
  LiveRequests& requests_;
  const ShadowExecutor& executor_;

  int64_t num_offered_ = 0;
  int64_t num_refused_ = 0;
  int64_t num_finished_ = 0;
  std::array<int64_t, 5> num_by_reason_ = {};
  shadow::UsageTotals totals_;
};

}  // namespace ingot::simulation
