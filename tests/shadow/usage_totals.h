#pragma once

#include <cstdint>

#include "base/result.h"
#include "scheduler/request.h"
#include "scheduler/scheduler.h"

namespace ingot::shadow {

// What all reports say together, and whether it is what the scheduler counted.
class UsageTotals {
 public:
  void add(const scheduler::RequestReport& report);

  // When nothing waits and nothing runs: nothing is held, and the reports add up to the stats.
  base::Status check_idle(const scheduler::SchedulerStats& stats, int32_t num_pages) const;

 private:
  int64_t num_reports_ = 0;
  int64_t num_lookup_tokens_ = 0;  // prompts of requests that were admitted
  int64_t num_hit_tokens_ = 0;
  int64_t num_prefill_tokens_ = 0;
  int64_t num_recomputed_tokens_ = 0;
  int64_t num_accepted_tokens_ = 0;
  int64_t num_rejected_tokens_ = 0;
  int64_t num_preemptions_ = 0;
};

}  // namespace ingot::shadow
