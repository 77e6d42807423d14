#pragma once

#include <cstdint>

#include "base/result.h"
#include "scheduler/request.h"
#include "shadow/prefix_chain.h"

namespace ingot::shadow {

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

// A request that was added and has not ended, as its batches and their results tell of it.
struct ShadowRequest {
  ShadowRequest(scheduler::Request request, int64_t its_arrival);

  scheduler::Request asked;  // its prompt is in `known`
  int64_t arrival = 0;       // counts the requests
  int32_t num_prompt_tokens = 0;
  PrefixChain known;  // the prompt, and what was drawn

  int32_t num_computed = 0;       // positions in the cache, after its last batch
  int32_t num_held = 0;           // the most positions that it ever had in the cache
  int32_t num_found = 0;          // prompt tokens in the cache before it computed them
  int32_t num_prompt_logits = 0;  // prompt rows, in order, whose logits were asked for
  int32_t num_batches = 0;        // that it was in
  int32_t num_starts = 0;         // of them, those that began a page table
  int32_t num_preemptions = 0;    // that batches told of
  int64_t last_step = 0;          // that computed a row of it
  RowCounts rows = {};

  int32_t num_known() const { return known.size(); }
  int32_t num_drawn() const { return num_known() - num_prompt_tokens; }
  bool goes_before(const ShadowRequest& other) const;

  // That the report of its end says what was computed for it.
  base::Status check_usage(const scheduler::Usage& usage) const;
};

}  // namespace ingot::shadow
