#include "shadow/watched_executor.h"

#include <utility>

#include <fmt/format.h>

namespace ingot::shadow {

WatchedExecutor::WatchedExecutor(const scheduler::SchedulerConfig& config,
                                 scheduler::Executor& executor, DraftsOf drafts)
    : executor_(executor),
      drafts_(std::move(drafts)),
      num_pages_(config.num_pages),
      cache_(config) {}

void WatchedExecutor::remove(scheduler::RequestId id, const scheduler::RequestReport& report) {
  if (!violation_) note(cache_.request(id).check_usage(report.usage));
  cache_.remove(id);
  totals_.add(report);
}

base::Status WatchedExecutor::check_idle(const scheduler::SchedulerStats& stats) const {
  if (violation_) return std::unexpected(*violation_);
  TRY(cache_.check_stats(stats));
  return totals_.check_idle(stats, num_pages_);
}

const scheduler::StepResult& WatchedExecutor::execute(const scheduler::Batch& batch) {
  if (!violation_) note(run(batch));
  if (!violation_) return *result_;
  failure_.sequences.assign(batch.sequences.size(), {.error = violation_->message});
  return failure_;
}

base::Status WatchedExecutor::run(const scheduler::Batch& batch) {
  TRY(cache_.begin_step(batch));
  result_ = &executor_.execute(batch);
  return cache_.end_step(batch, drafts_, *result_);
}

void WatchedExecutor::note(base::Status status) {
  if (status) return;
  violation_ = base::Error{fmt::format("step {}: {}", cache_.num_steps(), status.error().message)};
}

}  // namespace ingot::shadow
