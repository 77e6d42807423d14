#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "scheduler/page_account.h"
#include "scheduler/request.h"

namespace ingot::scheduler {

// A request on its way, from `add` to its report. Owned by the scheduler.
struct Sequence {
  enum class Phase : uint8_t {
    kWaiting,
    kDeferred,    // waits until a running sequence has computed a prefix that it needs too
    kPrefilling,  // has a slot; until its known tokens are computed and one was drawn
    kDecoding,
  };

  Request request;      // its prompt has moved to `tokens`
  int64_t arrival = 0;  // counts the requests
  int32_t num_prompt_tokens = 0;
  std::vector<int32_t> tokens = {};  // all that are known: prompt, then output
  Phase phase = Phase::kWaiting;

  // While it runs.
  int32_t slot = -1;
  PageHolding holding = {};
  int32_t num_told_pages = 0;  // of the holding, that the executor knows
  int32_t num_computed = 0;    // tokens whose rows are in the cache
  bool repeats_last = false;   // row num_computed - 1 has to be computed again, without writing
  bool is_stalled = false;     // prefilling, and the last step had no rows for it
  std::vector<Sequence*> followers = {};  // deferred until this one has computed a prefix

  int32_t prefix_awaited = 0;     // of kDeferred: tokens of the shared prefix
  Sequence* leader = nullptr;     // of kDeferred
  int32_t num_ever_computed = 0;  // the most that num_computed was, across preemptions
  int32_t num_prompt_logits = 0;  // rows whose logits were asked for, across preemptions

  // What was asked for while its step was under way.
  bool in_flight = false;
  std::optional<FinishReason> ending = {};

  Usage usage = {};
  Timings timings = {};

  bool runs() const { return phase == Phase::kPrefilling || phase == Phase::kDecoding; }
  int32_t num_known() const { return static_cast<int32_t>(tokens.size()); }
  int32_t num_output() const { return num_known() - num_prompt_tokens; }
  int32_t num_left_to_draw() const { return request.max_tokens - num_output(); }
  // Positions that its rows can come to take: the last drawn token has none.
  int32_t max_positions() const {
    return num_prompt_tokens + (request.max_tokens > 0 ? request.max_tokens - 1 : 0);
  }
  // Rows to compute until a token is drawn.
  int32_t num_rows_left() const { return num_known() - num_computed + (repeats_last ? 1 : 0); }
};

// Who goes first: the higher priority, then who came earlier.
struct GoesFirst {
  bool operator()(const Sequence* a, const Sequence* b) const {
    if (a->request.priority != b->request.priority) {
      return a->request.priority > b->request.priority;
    }
    return a->arrival < b->arrival;
  }
};

}  // namespace ingot::scheduler
