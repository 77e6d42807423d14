#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "scheduler/batch.h"

namespace ingot::scheduler {

// Tokens to be continued, and under which conditions.
struct Request {
  RequestId id = 0;
  std::vector<int32_t> prompt = {};            // at least one token
  int32_t max_tokens = 0;                      // 0: the prompt is computed and nothing drawn
  int32_t min_tokens = 0;                      // before as many, stop_token_ids end nothing
  std::vector<int32_t> stop_token_ids = {};    // end the request; not part of its output
  int32_t priority = 0;                        // higher goes first
  std::optional<base::Instant> deadline = {};  // by when it has to be finished
  std::string cache_salt = {};  // requests share cached prefixes with those of the same salt alone
  // No for a request that wants the logits of its whole prompt: then all of it is computed.
  bool reads_prefix_cache = true;
  bool wants_prompt_logits = false;
  int32_t max_draft_tokens = INT32_MAX;  // at most as many drafts a step as this
};

enum class FinishReason : uint8_t {
  kStop,    // a stop token, or what `Scheduler::stop` was told
  kLength,  // max_tokens
  kCancelled,
  kDeadline,
  kError,  // of the executor
};
std::string_view name(FinishReason reason);

// In tokens. With drafts, num_draft_tokens - num_accepted_tokens rows were computed for nothing.
struct Usage {
  int32_t num_prompt_tokens = 0;
  int32_t num_cached_tokens = 0;   // of the prompt, found in the cache before they were computed
  int32_t num_prefill_tokens = 0;  // of the prompt, computed: with the cached ones the whole prompt
  int32_t num_output_tokens = 0;
  int32_t num_draft_tokens = 0;
  int32_t num_accepted_tokens = 0;
  int32_t num_recomputed_tokens = 0;  // known tokens computed once more after preemptions
  int32_t num_preemptions = 0;
};

// Absent: it did not come to that.
struct Timings {
  base::Instant arrived = {};
  std::optional<base::Instant> admitted = {};     // first
  std::optional<base::Instant> first_token = {};  // committed
  base::Instant finished = {};
};

// How a request ended; each has exactly one.
struct RequestReport {
  FinishReason reason = FinishReason::kStop;
  std::string error = {};  // of kError
  Usage usage = {};
  Timings timings = {};
};

// News of one request. Its events come in order; the one with a report is the last.
struct RequestEvent {
  RequestId request = 0;
  std::vector<int32_t> tokens = {};  // that continue its output
  std::optional<RequestReport> report = {};
};

}  // namespace ingot::scheduler
