#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "scheduler/executor.h"
#include "scheduler/scheduler.h"
#include "shadow/shadow_cache.h"
#include "simulation/live_request.h"

namespace ingot::simulation {

// An executor without a model: in place of numbers it has a ShadowCache, which checks every batch.
// What it draws is a pure function of the prefix.
class ShadowExecutor final : public scheduler::Executor {
 public:
  // `requests`: those that may be in a batch. Must outlive this.
  ShadowExecutor(const scheduler::SchedulerConfig& config, uint64_t seed, LiveRequests& requests)
      : seed_(seed), requests_(requests), cache_(config) {}

  // The scheduler took a request, or reported its end.
  void add(const scheduler::Request& request) { cache_.add(request); }
  void remove(scheduler::RequestId id) { cache_.remove(id); }

  // Checks the batch and computes it; after a violation it computes nothing more.
  const scheduler::StepResult& execute(const scheduler::Batch& batch) override;

  // The first rule that a batch broke.
  const std::optional<base::Error>& violation() const { return violation_; }
  const shadow::ShadowCache& cache() const { return cache_; }
  int32_t num_rows_in_step() const { return num_rows_in_step_; }
  int32_t deepest_chain_in_step() const { return deepest_chain_in_step_; }

 private:
  using Entry = scheduler::Batch::Sequence;

  base::Status run_step(const scheduler::Batch& batch);
  void compute(const scheduler::Batch& batch);
  int32_t draft(const Entry& entry, std::vector<int32_t>& drafts);

  LiveRequest& live(const Entry& entry) { return requests_.find(entry.request)->second; }

  const uint64_t seed_;
  LiveRequests& requests_;
  shadow::ShadowCache cache_;

  scheduler::StepResult result_;
  std::vector<std::vector<int32_t>> drafts_;  // of the step, in its order
  int32_t num_rows_in_step_ = 0;
  int32_t deepest_chain_in_step_ = 0;
  std::optional<base::Error> violation_;
};

}  // namespace ingot::simulation
