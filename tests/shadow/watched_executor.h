#pragma once

#include <optional>

#include "base/result.h"
#include "scheduler/executor.h"
#include "scheduler/scheduler.h"
#include "shadow/shadow_cache.h"
#include "shadow/usage_totals.h"

namespace ingot::shadow {

// Runs another executor's batches, a real model's, with a ShadowCache beside it. A batch that
// breaks a rule is not run: all of its sequences fail with the rule, and so do all batches after
// it, so that nobody who waits for answers waits in vain. A result that breaks one ends the same
// way. One thread uses it, that of the executor.
class WatchedExecutor final : public scheduler::Executor {
 public:
  // `executor` must outlive it; `drafts` tells of its last batch.
  WatchedExecutor(const scheduler::SchedulerConfig& config, scheduler::Executor& executor,
                  DraftsOf drafts);

  // What the scheduler took, in the same order.
  void add(const scheduler::Request& request) { cache_.add(request); }
  // A request ended. REQUIRES: it was added.
  void remove(scheduler::RequestId id, const scheduler::RequestReport& report);

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override;

  // When nothing waits and nothing runs: that nothing is held and all counts agree.
  base::Status check_idle(const scheduler::SchedulerStats& stats) const;

  // The first rule that was broken.
  const std::optional<base::Error>& violation() const { return violation_; }
  const ShadowCache& cache() const { return cache_; }

 private:
  base::Status run(const scheduler::Batch& batch);
  void note(base::Status status);

  scheduler::Executor& executor_;
  const DraftsOf drafts_;
  const int32_t num_pages_;
  ShadowCache cache_;
  UsageTotals totals_;
  const scheduler::StepResult* result_ = nullptr;  // of executor_
  scheduler::StepResult failure_;
  std::optional<base::Error> violation_;
};

}  // namespace ingot::shadow
