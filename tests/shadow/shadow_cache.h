#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/result.h"
#include "scheduler/batch.h"
#include "scheduler/scheduler.h"
#include "shadow/page_tables.h"
#include "shadow/prefix_chain.h"
#include "shadow/shadow_request.h"

namespace ingot::shadow {

// The tokens that an executor drafted after those of the batch's sequence number `index`.
using DraftsOf = std::function<std::span<const int32_t>(size_t index)>;

// A paged cache that remembers, instead of numbers, which prefix the contents of every slot were
// computed for, so that it knows whether a batch would read anything else; that is the kind of
// fault which a model shows only as slightly worse text. Beside it stands whatever computes.
//
// Slot q of the MTP layer holds the row of (hidden[q-1], token[q]). While a chain drafts, hidden
// comes from the chain itself; verification computes the rows again with the target's. Only those
// may be read. There is no row in slot 0.
//
// Errors are rules that were broken; after one nothing more is to be asked of it.
class ShadowCache {
 public:
  explicit ShadowCache(const scheduler::SchedulerConfig& config);

  // What the scheduler took, in the same order. REQUIRES: its id was not added before.
  void add(scheduler::Request request);
  // After its report.
  void remove(scheduler::RequestId id);
  // REQUIRES: it was added and not removed. Valid until it is.
  const ShadowRequest& request(scheduler::RequestId id) const;

  // A batch is to be executed: it is checked against all that went before, and its pages are taken
  // over.
  base::Status begin_step(const scheduler::Batch& batch);
  // The batch was executed: what was drafted and drawn stands in the cache.
  base::Status end_step(const scheduler::Batch& batch, const DraftsOf& drafts,
                        const scheduler::StepResult& result);

  // Between two steps: that the scheduler counted the same steps and rows.
  base::Status check_stats(const scheduler::SchedulerStats& stats) const;

  const PageTables& tables() const { return tables_; }
  // Of all steps, but for sequences that failed.
  const RowCounts& rows() const { return rows_; }
  int64_t num_steps() const { return num_steps_; }

 private:
  using Entry = scheduler::Batch::Sequence;

  // shadow_cache_checks.cc
  base::Status release_slots(const scheduler::Batch& batch);
  base::Status check_entry(const Entry& entry);
  base::Status check_rows(const Entry& entry, const ShadowRequest& request) const;
  base::Status check_logit_rows(const Entry& entry, const ShadowRequest& request) const;
  base::Status check_start(const Entry& entry, const ShadowRequest& request,
                           const PageTables::Table& table) const;
  base::Status check_pages(const Entry& entry, PageTables::Table& table);
  base::Status check_reads(const Entry& entry, const ShadowRequest& request,
                           const PageTables::Table& table) const;
  base::Status check_writes(const Entry& entry) const;
  base::Status check_budgets(const scheduler::Batch& batch) const;
  base::Status check_everybody_decodes(const scheduler::Batch& batch) const;
  base::Status check_first_prefill(const scheduler::Batch& batch) const;
  static base::Status check_result(const Entry& entry, std::span<const int32_t> drafts,
                                   const scheduler::StepResult::Sequence& result);

  // shadow_cache.cc
  void write(const PageTables::Table& table, int32_t position, PrefixId prefix);
  void forget_rows(const Entry& entry);
  void write_rows(const Entry& entry, std::span<const int32_t> drafts);
  void count_rows(const Entry& entry, int32_t num_accepted);

  bool speculates() const { return config_.speculation != scheduler::SpeculationMode::kOff; }
  bool has_mtp_rows() const { return config_.writes_mtp_rows || speculates(); }

  const scheduler::SchedulerConfig config_;
  std::map<scheduler::RequestId, ShadowRequest> requests_;
  int64_t num_arrivals_ = 0;

  PageTables tables_;
  std::vector<PrefixId> latents_;   // [num_pages * kPageTokens]
  std::vector<PrefixId> mtp_rows_;  // [num_pages * kPageTokens]
  RowCounts rows_;
  int64_t num_steps_ = 0;
};

}  // namespace ingot::shadow
