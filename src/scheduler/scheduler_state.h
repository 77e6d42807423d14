#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "scheduler/page_account.h"
#include "scheduler/prefill_shares.h"
#include "scheduler/scheduler.h"
#include "scheduler/sequence.h"

namespace ingot::scheduler {

// What a Scheduler is made of; for its own sources alone.
class Scheduler::State {
 public:
  explicit State(const SchedulerConfig& config);
  ~State();

  // scheduler.cc: requests come and go.
  base::Status add(Request request, base::Instant now);
  bool cancel(RequestId id, base::Instant now);
  bool stop(RequestId id, int32_t num_output_tokens, base::Instant now);
  std::vector<RequestEvent> take_events() {
    std::vector<RequestEvent> events;
    // The next step has about as many, and growing step by step costs a fifth of its time.
    events.reserve(events_.size());
    std::swap(events, events_);
    return events;
  }
  bool idle() const { return requests_.empty(); }
  int32_t max_request_tokens() const;
  SchedulerStats stats() const;

  const Batch& schedule(base::Instant now);
  void commit(const StepResult& result, base::Instant now);

  // scheduler_invariants.cc
  void check_invariants() const;

 private:
  using Running = std::vector<Sequence*>;

  // scheduler.cc
  Sequence* find(RequestId id) const;
  void expire(base::Instant now);
  void finish(Sequence& sequence, FinishReason reason, base::Instant now, std::string error = {});
  void leave_queue(Sequence& sequence);

  // scheduler_admission.cc: who runs.
  void admit(base::Instant now);
  bool has_lane_for(const Sequence& sequence) const;
  bool defer(Sequence& sequence);
  Sequence* leader_of(const Sequence& sequence, int32_t num_cached, int32_t& num_shared) const;
  bool is_sure_not_to_fit(const Sequence& sequence) const;
  std::span<const int32_t> cacheable(const Sequence& sequence) const;
  int32_t pages_to_promise(const Sequence& sequence) const;
  bool open_holding(Sequence& sequence);
  bool make_room_for(Sequence& sequence);
  Sequence* last_preemptible() const;
  Sequence* victim_for(const Sequence& sequence) const;
  void start(Sequence& sequence, base::Instant now);
  void count_admission(Sequence& sequence, int32_t num_found);
  void release_followers(Sequence& leader, int32_t num_entered);
  void stop_running(Sequence& sequence, PageAccount::Entered entered);
  void preempt(Sequence& sequence);
  bool is_preemptible(const Sequence& sequence) const;
  void secure_decode_pages();

  // scheduler_batch.cc: who computes what in this step.
  void compose_batch();
  void choose_drafts();
  int32_t max_drafts(const Sequence& sequence, int32_t depth) const;
  int32_t max_logit_rows() const;
  int32_t secure_draft_pages(Sequence& sequence, int32_t num_drafts);
  void share_out_prefill();
  void append_decode(Sequence& sequence, int32_t num_drafts);
  void append_prefill(Sequence& sequence, int32_t num_rows);
  Batch::Sequence& append_entry(Sequence& sequence);
  void tell_new_pages(Sequence& sequence, Batch::Sequence& entry);
  void set_spare_entries_aside();

  // scheduler.cc: what came of it.
  void commit_sequence(Sequence& sequence, const Batch::Sequence& entry,
                       const StepResult::Sequence& result, base::Instant now);
  void count_rows(Sequence& sequence, const Batch::Sequence& entry, int32_t num_accepted);
  void append_drawn(Sequence& sequence, const std::vector<int32_t>& drawn, base::Instant now,
                    std::optional<FinishReason>& ending);
  void observe_step(base::Instant now);

  const SchedulerConfig config_;
  PageAccount account_;
  DraftDepth depth_;

  std::unordered_map<RequestId, std::unique_ptr<Sequence>> requests_;
  std::set<Sequence*, GoesFirst> waiting_;  // without the deferred ones
  Running running_;                         // sorted by GoesFirst
  std::map<std::pair<base::Instant, int64_t>, Sequence*> deadlines_;
  std::vector<int32_t> free_slots_;
  std::vector<int32_t> released_slots_;  // that the executor does not know of yet
  int64_t num_arrivals_ = 0;
  int32_t num_deferred_ = 0;

  // The first in the queue when it did not fit, and what it needed then. What was entered into the
  // cache since may be part of its prefix, and no more than that.
  struct Blocked {
    const Sequence* sequence = nullptr;
    PageDemand demand = {};
    int64_t num_inserted_tokens = 0;
  };
  Blocked blocked_;
  bool preempted_in_this_step_ = false;

  Batch batch_;
  std::vector<Batch::Sequence> spare_entries_;  // with the memory of earlier batches
  std::vector<Sequence*> in_flight_;            // of batch_, in its order
  std::vector<Sequence*> decoding_, prefilling_;
  std::vector<int32_t> num_drafts_;                  // of decoding_
  std::vector<PrefillShare> shares_;                 // of prefilling_
  std::vector<int32_t> num_drafted_, num_accepted_;  // of the step, by position in the chain
  int32_t depth_of_step_ = 0;
  base::Instant scheduled_at_{};
  bool under_way_ = false;

  int64_t step_ = 0;
  std::vector<RequestEvent> events_;
  SchedulerStats stats_;
};

}  // namespace ingot::scheduler
