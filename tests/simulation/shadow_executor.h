#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "scheduler/executor.h"
#include "scheduler/scheduler.h"
#include "simulation/live_request.h"
#include "simulation/page_tables.h"

namespace ingot::simulation {

// An executor without a model. Instead of numbers, every slot of its cache remembers which prefix
// its contents were computed for, so that it knows whether a batch would read anything else; that
// is the kind of fault which a real model shows only as slightly worse text. What it draws is a
// pure function of the prefix.
//
// Slot q of the MTP layer holds the row of (hidden[q-1], token[q]). While a chain drafts, hidden
// comes from the chain itself; verification computes the rows again with the target's. Only those
// may be read. There is no row in slot 0.
class ShadowExecutor final : public scheduler::Executor {
 public:
  // `requests`: those that may be in a batch. Must outlive this.
  ShadowExecutor(const scheduler::SchedulerConfig& config, uint64_t seed, LiveRequests& requests);

  // Checks the batch and computes it; after a violation it computes nothing more.
  const scheduler::StepResult& execute(const scheduler::Batch& batch) override;

  // The step is to be committed: its rows and draws count, but for requests that failed in it or
  // that are gone since.
  void settle();

  // The first rule that a batch broke.
  const std::optional<base::Error>& violation() const { return violation_; }
  const PageTables& tables() const { return tables_; }
  const RowCounts& rows() const { return rows_; }
  // Slots that were released while their request went on.
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t num_steps() const { return num_steps_; }
  int32_t num_rows_in_step() const { return num_rows_in_step_; }
  int32_t deepest_chain_in_step() const { return deepest_chain_in_step_; }

 private:
  using Entry = scheduler::Batch::Sequence;

  // What execution noted of an entry, to be counted by `settle`.
  struct Settlement {
    scheduler::RequestId request = 0;
    int32_t num_computed = 0;
    int32_t num_drawn = 0;
    int32_t num_prompt_logits = 0;
    RowCounts rows = {};
  };

  // shadow_checks.cc; an error is a violation.
  base::Status check(const scheduler::Batch& batch);
  base::Status release_slots(const scheduler::Batch& batch);
  base::Status check_entry(const Entry& entry);
  base::Status check_rows(const Entry& entry, LiveRequest& request) const;
  base::Status check_logit_rows(const Entry& entry, const LiveRequest& request) const;
  base::Status check_start(const Entry& entry, const LiveRequest& request,
                           const PageTables::Table& table) const;
  base::Status check_pages(const Entry& entry, PageTables::Table& table);
  base::Status check_reads(const Entry& entry, LiveRequest& request,
                           const PageTables::Table& table) const;
  base::Status check_writes(const Entry& entry) const;
  base::Status check_budgets(const scheduler::Batch& batch) const;
  base::Status check_everybody_decodes(const scheduler::Batch& batch) const;
  base::Status check_first_prefill(const scheduler::Batch& batch) const;

  // shadow_executor.cc
  void compute(const scheduler::Batch& batch);
  void compute_entry(const Entry& entry, scheduler::StepResult::Sequence& result);
  void fail_entry(const Entry& entry);
  int32_t verify_drafts(const Entry& entry, const PageTables::Table& table, LiveRequest& request);
  void write(const PageTables::Table& table, int32_t position, PrefixId latent, PrefixId mtp_row);

  bool speculates() const { return config_.speculation != scheduler::SpeculationMode::kOff; }
  LiveRequest& request_of(const Entry& entry);

  const scheduler::SchedulerConfig config_;
  const uint64_t seed_;
  LiveRequests& requests_;

  PageTables tables_;
  std::vector<PrefixId> latents_;   // [num_pages * kPageTokens]
  std::vector<PrefixId> mtp_rows_;  // [num_pages * kPageTokens]

  scheduler::StepResult result_;
  std::vector<Settlement> settlements_;
  RowCounts rows_;
  int64_t num_preemptions_ = 0;
  int64_t num_steps_ = 0;
  int32_t num_rows_in_step_ = 0;
  int32_t deepest_chain_in_step_ = 0;
  std::optional<base::Error> violation_;
};

}  // namespace ingot::simulation
