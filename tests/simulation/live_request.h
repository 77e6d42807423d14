#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "scheduler/request.h"
#include "simulation/continuation.h"
#include "simulation/request_plan.h"

namespace ingot::simulation {

// Rows that were computed, each counted once, by what they were for.
struct RowCounts {
  int64_t prefill = 0;     // of the prompt, for the first time
  int64_t decode = 0;      // of drawn tokens, for the first time; accepted drafts too
  int64_t recomputed = 0;  // once more
  int64_t read_only = 0;
  int64_t accepted = 0;  // part of decode
  int64_t rejected = 0;

  void add(const RowCounts& other) {
    prefill += other.prefill;
    decode += other.decode;
    recomputed += other.recomputed;
    read_only += other.read_only;
    accepted += other.accepted;
    rejected += other.rejected;
  }
  int64_t total() const { return prefill + decode + recomputed + read_only + rejected; }
};

// A request that was added and not reported yet, as the simulation knows it to be.
struct LiveRequest {
  LiveRequest(uint64_t seed, RequestPlan its_plan, base::Instant now);

  RequestPlan plan;
  Continuation truth;
  base::Instant arrived;
  int32_t num_prompt_tokens = 0;

  // How it ends if nothing comes between, and with how many output tokens.
  scheduler::FinishReason natural_end = scheduler::FinishReason::kLength;
  int32_t natural_length = 0;

  // What the executor did for it. Rows and draws count once they are to be committed.
  int32_t num_known = 0;          // prompt tokens and draws
  int32_t num_computed = 0;       // positions in the cache, after its last batch
  int32_t num_held = 0;           // the most positions that it ever had in the cache
  int32_t num_found = 0;          // prompt tokens in the cache before it computed them
  int32_t num_prompt_logits = 0;  // prompt rows, in order, whose logits were asked for
  int32_t num_batches = 0;        // that it was in
  int32_t num_starts = 0;         // of them, those that began a page table
  int32_t num_preemptions = 0;    // that batches told of
  int64_t last_step = 0;          // that computed a row of it
  RowCounts rows = {};
  std::string failure = {};  // not empty: the executor gave this error

  // What its events told, and what was called.
  int32_t num_told = 0;
  int32_t num_steps_waited = 0;
  bool cancelled = false;
  int32_t stop_length = -1;  // not negative: stop() was called with it

  // Steps in a row in which neither it nor anybody who goes before it computed a row.
  int32_t num_idle_steps = 0;

  int32_t num_drawn() const { return num_known - num_prompt_tokens; }
  // Somebody called for its end, or it failed.
  bool was_ended() const { return cancelled || stop_length >= 0 || !failure.empty(); }
  bool goes_before(const LiveRequest& other) const;
};

// By id, which is also the order of arrival.
using LiveRequests = std::map<scheduler::RequestId, LiveRequest>;

}  // namespace ingot::simulation
