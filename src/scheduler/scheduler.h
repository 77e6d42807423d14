#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "scheduler/batch.h"
#include "scheduler/draft_depth.h"
#include "scheduler/request.h"

namespace ingot::scheduler {

// The longest chain of drafts: several times what pays anywhere, and what statistics have room for.
inline constexpr int32_t kDraftTokensMax = 32;

struct SchedulerConfig {
  int32_t num_pages = 0;        // of kPageTokens positions
  int32_t num_slots = 0;        // sequences that run at once
  int32_t max_context = 0;      // positions of one sequence
  int32_t max_step_tokens = 0;  // rows of one step; more than num_slots
  int32_t max_logit_rows = 0;   // of them with logits; 0: all may have
  int32_t max_prefilling = 64;  // sequences whose prompts are computed side by side
  int32_t max_preemptions = 3;  // of one request; see below
  bool prefix_cache = true;
  // The executor's model has its MTP layer, whose rows need the hidden state before them: the last
  // row of a cached prefix is then computed again, also while speculation is off.
  bool writes_mtp_rows = false;
  SpeculationMode speculation = SpeculationMode::kOff;
  int32_t max_draft_tokens = 0;  // of one sequence in one step, at most kDraftTokensMax
};

// What was done so far and what is held now, in tokens unless it says otherwise.
struct SchedulerStats {
  int64_t num_requests_added = 0;  // refused ones are not
  int64_t num_requests_finished = 0;
  int64_t num_preemptions = 0;
  int64_t num_steps = 0;  // batches with sequences that were committed

  // The prompts of admitted requests, and how much of them was found in the cache. Once a request
  // has drawn a token, its hits and its prefill tokens are its prompt.
  int64_t num_lookup_tokens = 0;
  int64_t num_hit_tokens = 0;
  // Rows that wrote the cache and count: of prompts, of drawn tokens, and again after preemption.
  int64_t num_prefill_tokens = 0;
  int64_t num_decode_tokens = 0;
  int64_t num_recomputed_tokens = 0;
  int64_t num_reused_output_tokens = 0;  // found in the cache after a preemption, by others' doing
  // Rows that were computed and do not count: repeated without writing, and rejected drafts.
  int64_t num_read_only_tokens = 0;
  int64_t num_rejected_tokens = 0;
  int64_t num_accepted_tokens = 0;  // drafts; part of num_decode_tokens
  // Both again by position in the chain: how often there was a draft, and how often it was
  // accepted, which takes that those before it were. The first max_draft_tokens positions count.
  std::array<int64_t, kDraftTokensMax> drafted_by_position = {};
  std::array<int64_t, kDraftTokensMax> accepted_by_position = {};
  int64_t num_evicted_tokens = 0;  // from the prefix cache

  int32_t num_waiting = 0;  // requests
  int32_t num_running = 0;  // requests
  int32_t num_free_pages = 0;
  int32_t num_cached_pages = 0;     // in the prefix cache
  int32_t num_evictable_pages = 0;  // of them, in nobody's use
};

// Decides who computes what in each step: continuous batching with chunked prefill over a paged
// cache whose prefixes are shared. Knows no tensor, no model and no clock; the same calls give the
// same batches. One thread uses it.
//
// A step is `schedule`, the executor, `commit`. `add`, `cancel` and `stop` may come at any moment,
// also between the two.
//
// Order. Every decoding sequence takes part in every step. What is left of max_step_tokens goes to
// prefill: half to the first sequence, by priority, then arrival, and the other half to those with
// the fewest tokens left. Drafts take at most half of what decoding leaves while anybody prefills.
// So the first prompt, with L tokens to compute, is done after at most 4 L / (max_step_tokens -
// num_slots) steps, half as many without drafts, if it is not preempted; wanted prompt logits may
// hold it up. A short prompt is not held up by longer ones that prefill, once it is admitted.
//
// Admission. By priority, then arrival, while fewer than max_prefilling of no lower priority
// prefill. Nobody is overtaken by others of its priority that arrived later, except while it waits
// for a prefix: a request whose prefix a running one of no lower priority is about to compute is
// set aside until that is done, or gets no rows. A request is admitted when the pages of its whole
// prompt are free or can be evicted, beside those that were promised before and a page for each
// that runs. So no admission makes a prefill stop for lack of pages.
//
// Preemption. A decoding sequence that needs a page where none is to be had takes it from the
// running sequence of the lowest priority, of these the newest, which may be itself; so does the
// admission of a request of higher priority. The victim gives up its pages and slot and waits at
// its old place; what it had computed stays in the prefix cache while there is room. A request that
// was preempted max_preemptions times is admitted again only with pages for all that it may still
// draw, and is never preempted again.
class Scheduler {
 public:
  // Errors: numbers that contradict each other.
  static base::Result<Scheduler> create(const SchedulerConfig& config);
  Scheduler(Scheduler&&) noexcept;
  ~Scheduler();

  // Errors: a request that can never run, with what it would need. Nothing happens then.
  // REQUIRES: its id was not added before.
  base::Status add(Request request, base::Instant now);

  // Ends a request. Its report is among the next events, or among those of `commit` if its step is
  // under way; of several calls the first decides. False: there is none of that id (any more).
  bool cancel(RequestId id, base::Instant now);

  // Ends a request whose text met a stop string: its output is cut to the first
  // `num_output_tokens`, of those that events have told. False as above.
  bool stop(RequestId id, int32_t num_output_tokens, base::Instant now);

  // The next batch, valid until the next call of `schedule`. Without sequences there is nothing to
  // do, and nothing to commit. REQUIRES: the batch before was committed.
  const Batch& schedule(base::Instant now);

  // What came of the last batch.
  void commit(const StepResult& result, base::Instant now);

  // The events since the last call, in the order in which they came to be.
  std::vector<RequestEvent> take_events();

  // Nothing waits and nothing runs.
  bool idle() const;
  // The most tokens, prompt and output together, that a request may have.
  int32_t max_request_tokens() const;
  SchedulerStats stats() const;

  // Stops the process if anything that docs/INVARIANTS.md says of the scheduler does not hold.
  void check_invariants() const;

 private:
  class State;
  explicit Scheduler(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace ingot::scheduler
