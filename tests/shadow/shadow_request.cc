#include "shadow/shadow_request.h"

#include <utility>

namespace ingot::shadow {

using base::error;

ShadowRequest::ShadowRequest(scheduler::Request request, int64_t its_arrival)
    : asked(std::move(request)),
      arrival(its_arrival),
      num_prompt_tokens(static_cast<int32_t>(asked.prompt.size())),
      known(asked.cache_salt, std::exchange(asked.prompt, {})) {}

bool ShadowRequest::goes_before(const ShadowRequest& other) const {
  return asked.priority != other.asked.priority ? asked.priority > other.asked.priority
                                                : arrival < other.arrival;
}

// A request that was admitted and preempted before it was in any batch is seen by nobody, so
// counts that an admission changes are compared only if batches told of every admission.
base::Status ShadowRequest::check_usage(const scheduler::Usage& usage) const {
  const int32_t num_accounted = usage.num_cached_tokens + usage.num_prefill_tokens;
  if (usage.num_prompt_tokens != num_prompt_tokens || num_accounted > num_prompt_tokens ||
      (num_drawn() > 0 && num_accounted != num_prompt_tokens)) {
    return error("request {} drew {} tokens, and of its prompt of {} its usage has {}: {} + {}",
                 asked.id, num_drawn(), num_prompt_tokens, usage.num_prompt_tokens,
                 usage.num_cached_tokens, usage.num_prefill_tokens);
  }
  if (usage.num_preemptions < num_preemptions) {
    return error("request {} was preempted {} times, by its usage {} times", asked.id,
                 num_preemptions, usage.num_preemptions);
  }
  if (usage.num_accepted_tokens != rows.accepted ||
      usage.num_draft_tokens != rows.accepted + rows.rejected) {
    return error("request {} had {} of {} drafts accepted, by its usage {} of {}", asked.id,
                 rows.accepted, rows.accepted + rows.rejected, usage.num_accepted_tokens,
                 usage.num_draft_tokens);
  }
  const bool all_seen = num_starts == usage.num_preemptions + 1;
  if (all_seen &&
      (usage.num_cached_tokens != num_found || usage.num_prefill_tokens != rows.prefill ||
       usage.num_recomputed_tokens != rows.recomputed)) {
    return error(
        "request {} found {} tokens, computed {} and recomputed {}, by its usage {}, {} and {}",
        asked.id, num_found, rows.prefill, rows.recomputed, usage.num_cached_tokens,
        usage.num_prefill_tokens, usage.num_recomputed_tokens);
  }
  return {};
}

}  // namespace ingot::shadow
