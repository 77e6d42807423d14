#include "scheduler/scheduler.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "scheduler/scheduler_state.h"

namespace ingot::scheduler {

base::Result<Scheduler> Scheduler::create(const SchedulerConfig& config) {
  const auto at_least = [](std::string_view what, int64_t value, int64_t least) -> base::Status {
    if (value >= least) return {};
    return base::error("the scheduler's {} is {}; it has to be at least {}", what, value, least);
  };
  TRY(at_least("num_pages", config.num_pages, 1));
  TRY(at_least("num_slots", config.num_slots, 1));
  TRY(at_least("max_context", config.max_context, 1));
  // A row for every decoding sequence, and two for a prefill that has to repeat one.
  TRY(at_least("max_step_tokens", config.max_step_tokens, int64_t{config.num_slots} + 2));
  if (config.max_logit_rows != 0) {
    TRY(at_least("max_logit_rows", config.max_logit_rows, int64_t{config.num_slots} + 1));
  }
  TRY(at_least("max_prefilling", config.max_prefilling, 1));
  TRY(at_least("max_preemptions", config.max_preemptions, 0));
  TRY(at_least("max_draft_tokens", config.max_draft_tokens, 0));
  if (config.max_draft_tokens > kDraftTokensMax) {
    return base::error("the scheduler's max_draft_tokens is {}; it can be at most {}",
                       config.max_draft_tokens, kDraftTokensMax);
  }
  if (config.max_draft_tokens >= config.max_step_tokens) {
    return base::error("the scheduler's max_draft_tokens is {}; a step has {} rows",
                       config.max_draft_tokens, config.max_step_tokens);
  }
  return Scheduler(std::make_unique<State>(config));
}

Scheduler::Scheduler(std::unique_ptr<State> state) : state_(std::move(state)) {}
Scheduler::Scheduler(Scheduler&&) noexcept = default;
Scheduler::~Scheduler() = default;

base::Status Scheduler::add(Request request, base::Instant now) {
  return state_->add(std::move(request), now);
}
bool Scheduler::cancel(RequestId id, base::Instant now) { return state_->cancel(id, now); }
bool Scheduler::stop(RequestId id, int32_t num_output_tokens, base::Instant now) {
  return state_->stop(id, num_output_tokens, now);
}
const Batch& Scheduler::schedule(base::Instant now) { return state_->schedule(now); }
void Scheduler::commit(const StepResult& result, base::Instant now) { state_->commit(result, now); }
std::vector<RequestEvent> Scheduler::take_events() { return state_->take_events(); }
bool Scheduler::idle() const { return state_->idle(); }
int32_t Scheduler::max_request_tokens() const { return state_->max_request_tokens(); }
SchedulerStats Scheduler::stats() const { return state_->stats(); }
void Scheduler::check_invariants() const { state_->check_invariants(); }

Scheduler::State::State(const SchedulerConfig& config)
    : config_(config),
      account_(config.num_pages,
               config.prefix_cache ? PageAccount::Sharing::kPrefixes : PageAccount::Sharing::kNone),
      depth_(config.speculation,
             config.speculation == SpeculationMode::kOff ? 0 : config.max_draft_tokens) {
  for (int32_t slot = config.num_slots; slot-- > 0;) free_slots_.push_back(slot);
}

Scheduler::State::~State() {
  for (Sequence* sequence : running_) account_.close(sequence->holding, step_);
}

int32_t Scheduler::State::max_request_tokens() const {
  const int64_t cache = int64_t{config_.num_pages} * kPageTokens;
  return static_cast<int32_t>(std::min<int64_t>(config_.max_context, cache));
}

base::Status Scheduler::State::add(Request request, base::Instant now) {
  CHECK(!requests_.contains(request.id), "a request's id is used twice");
  if (request.prompt.empty()) return base::error("the prompt is empty; give at least one token");
  for (const auto& [what, value] :
       {std::pair("max_tokens", request.max_tokens), std::pair("min_tokens", request.min_tokens),
        std::pair("max_draft_tokens", request.max_draft_tokens)}) {
    if (value < 0) return base::error("{} is {}; it cannot be negative", what, value);
  }
  const int64_t total = static_cast<int64_t>(request.prompt.size()) + request.max_tokens;
  if (total > max_request_tokens()) {
    return base::error(
        "the prompt has {} tokens and max_tokens is {}, {} together; a request can have {} here",
        request.prompt.size(), request.max_tokens, total, max_request_tokens());
  }
  auto sequence = std::make_unique<Sequence>();
  sequence->arrival = num_arrivals_++;
  sequence->tokens = std::exchange(request.prompt, {});
  sequence->num_prompt_tokens = sequence->num_known();
  sequence->usage.num_prompt_tokens = sequence->num_known();
  sequence->timings.arrived = now;
  sequence->request = std::move(request);
  if (sequence->request.deadline) {
    deadlines_[{*sequence->request.deadline, sequence->arrival}] = sequence.get();
  }
  waiting_.insert(sequence.get());
  ++stats_.num_requests_added;
  requests_.emplace(sequence->request.id, std::move(sequence));
  return {};
}

Sequence* Scheduler::State::find(RequestId id) const {
  const auto found = requests_.find(id);
  return found == requests_.end() ? nullptr : found->second.get();
}

bool Scheduler::State::cancel(RequestId id, base::Instant now) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return false;
  if (sequence->ending) return true;
  if (sequence->in_flight) {
    sequence->ending = FinishReason::kCancelled;
  } else {
    finish(*sequence, FinishReason::kCancelled, now);
  }
  return true;
}

bool Scheduler::State::stop(RequestId id, int32_t num_output_tokens, base::Instant now) {
  Sequence* sequence = find(id);
  if (sequence == nullptr) return false;
  if (sequence->ending) return true;
  CHECK(0 <= num_output_tokens && num_output_tokens <= sequence->num_output());
  sequence->tokens.resize(static_cast<size_t>(sequence->num_prompt_tokens + num_output_tokens));
  if (sequence->in_flight) {
    sequence->ending = FinishReason::kStop;
  } else {
    finish(*sequence, FinishReason::kStop, now);
  }
  return true;
}

void Scheduler::State::expire(base::Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first.first <= now) {
    finish(*deadlines_.begin()->second, FinishReason::kDeadline, now);
  }
}

// The one exit of every request: whatever it holds is free after this.
void Scheduler::State::finish(Sequence& sequence, FinishReason reason, base::Instant now,
                              std::string error) {
  if (sequence.runs()) {
    // What made it fail may stand in pages that it entered, and would make others fail.
    stop_running(sequence, reason == FinishReason::kError ? PageAccount::Entered::kIsForgotten
                                                          : PageAccount::Entered::kStays);
  } else {
    leave_queue(sequence);
  }
  if (sequence.request.deadline) {
    deadlines_.erase({*sequence.request.deadline, sequence.arrival});
  }
  sequence.usage.num_output_tokens = sequence.num_output();
  sequence.timings.finished = now;
  const RequestId id = sequence.request.id;
  RequestReport report{.reason = reason,
                       .error = std::move(error),
                       .usage = sequence.usage,
                       .timings = sequence.timings};
  const bool continues_news = !events_.empty() && events_.back().request == id;
  if (!continues_news) events_.push_back({.request = id});
  events_.back().report = std::move(report);
  ++stats_.num_requests_finished;
  requests_.erase(id);
}

void Scheduler::State::leave_queue(Sequence& sequence) {
  // Another request may come to lie at its address.
  if (blocked_.sequence == &sequence) blocked_ = {};
  if (sequence.phase == Sequence::Phase::kDeferred) {
    std::erase(sequence.leader->followers, &sequence);
    --num_deferred_;
  } else {
    waiting_.erase(&sequence);
  }
}

const Batch& Scheduler::State::schedule(base::Instant now) {
  CHECK(!under_way_, "a batch is under way; commit it first");
  ++step_;
  preempted_in_this_step_ = false;
  expire(now);
  secure_decode_pages();
  // Who was alone and preempted itself comes back at once, or nothing would be computed.
  if (!preempted_in_this_step_ || running_.empty()) admit(now);
  compose_batch();
  under_way_ = !batch_.sequences.empty();
  scheduled_at_ = now;
  return batch_;
}

void Scheduler::State::commit(const StepResult& result, base::Instant now) {
  CHECK(result.sequences.size() == in_flight_.size(), "a result has to be in its batch's order");
  if (!under_way_) return;
  under_way_ = false;
  ++stats_.num_steps;
  num_drafted_.assign(static_cast<size_t>(config_.max_draft_tokens), 0);
  num_accepted_.assign(static_cast<size_t>(config_.max_draft_tokens), 0);
  for (size_t i = 0; i < in_flight_.size(); ++i) {
    in_flight_[i]->in_flight = false;
    commit_sequence(*in_flight_[i], batch_.sequences[i], result.sequences[i], now);
  }
  in_flight_.clear();
  observe_step(now);
}

void Scheduler::State::observe_step(base::Instant now) {
  StepObservation step{.num_decoding = static_cast<int32_t>(decoding_.size()),
                       .depth = depth_of_step_,
                       .duration = now - scheduled_at_,
                       .num_drafted = num_drafted_,
                       .num_accepted = num_accepted_};
  for (const PrefillShare& share : shares_) step.num_prefill_tokens += share.rows;
  depth_.observe(step);
}

void Scheduler::State::commit_sequence(Sequence& sequence, const Batch::Sequence& entry,
                                       const StepResult::Sequence& result, base::Instant now) {
  std::optional<FinishReason> ending = sequence.ending;
  if (!result.error.empty()) {
    return finish(sequence, ending.value_or(FinishReason::kError), now, ending ? "" : result.error);
  }
  const auto num_drawn = static_cast<int32_t>(result.tokens.size());
  CHECK(entry.draws ? 1 <= num_drawn && num_drawn <= entry.num_draft_tokens + 1 : num_drawn == 0,
        "a result has more or fewer tokens than its batch asked for");
  const int32_t num_accepted = entry.draws ? num_drawn - 1 : 0;
  count_rows(sequence, entry, num_accepted);
  if (ending) return finish(sequence, *ending, now);

  sequence.num_computed =
      entry.first_position + static_cast<int32_t>(entry.tokens.size()) + num_accepted;
  sequence.repeats_last = false;
  if (entry.draws) {
    sequence.phase = Sequence::Phase::kDecoding;
    append_drawn(sequence, result.tokens, now, ending);
  } else if (sequence.request.max_tokens == 0 && sequence.num_rows_left() == 0) {
    ending = FinishReason::kLength;
  }
  const auto num_final = static_cast<size_t>(std::min(sequence.num_computed, sequence.num_known()));
  account_.enter(sequence.holding, std::span(sequence.tokens).first(num_final), step_);
  // Once its prompt is computed nobody has to wait for more of it, entered or not.
  release_followers(
      sequence, entry.draws ? std::numeric_limits<int32_t>::max() : sequence.holding.num_entered);
  if (ending) finish(sequence, *ending, now);
}

void Scheduler::State::count_rows(Sequence& sequence, const Batch::Sequence& entry,
                                  int32_t num_accepted) {
  const int32_t begin = entry.first_position + entry.num_read_only_tokens;
  const int32_t end =
      entry.first_position + static_cast<int32_t>(entry.tokens.size()) + num_accepted;
  const int32_t prompt_end = sequence.num_prompt_tokens;
  const int32_t first_new = std::clamp(sequence.num_ever_computed, begin, end);
  const int32_t num_prefill = std::max(0, std::min(end, prompt_end) - first_new);
  sequence.num_ever_computed = std::max(sequence.num_ever_computed, end);
  sequence.usage.num_recomputed_tokens += first_new - begin;
  sequence.usage.num_prefill_tokens += num_prefill;
  sequence.usage.num_draft_tokens += entry.num_draft_tokens;
  sequence.usage.num_accepted_tokens += num_accepted;
  stats_.num_recomputed_tokens += first_new - begin;
  stats_.num_prefill_tokens += num_prefill;
  stats_.num_decode_tokens += end - first_new - num_prefill;
  stats_.num_read_only_tokens += entry.num_read_only_tokens;
  stats_.num_rejected_tokens += entry.num_draft_tokens - num_accepted;
  stats_.num_accepted_tokens += num_accepted;
  for (int32_t i = 0; i < entry.num_draft_tokens; ++i) {
    const auto position = static_cast<size_t>(i);
    ++num_drafted_[position];
    ++stats_.drafted_by_position[position];
    if (i >= num_accepted) continue;
    ++num_accepted_[position];
    ++stats_.accepted_by_position[position];
  }
}

// What was drawn, up to where it ends the request.
void Scheduler::State::append_drawn(Sequence& sequence, const std::vector<int32_t>& drawn,
                                    base::Instant now, std::optional<FinishReason>& ending) {
  const Request& request = sequence.request;
  const auto known_before = static_cast<ptrdiff_t>(sequence.tokens.size());
  if (!sequence.timings.first_token) sequence.timings.first_token = now;
  for (const int32_t token : drawn) {
    const bool may_stop = sequence.num_output() >= request.min_tokens;
    if (may_stop &&
        std::ranges::find(request.stop_token_ids, token) != request.stop_token_ids.end()) {
      ending = FinishReason::kStop;
      break;
    }
    sequence.tokens.push_back(token);
    if (sequence.num_left_to_draw() == 0) {
      ending = FinishReason::kLength;
      break;
    }
  }
  if (known_before == static_cast<ptrdiff_t>(sequence.tokens.size())) return;
  events_.push_back({.request = request.id,
                     .tokens = {sequence.tokens.begin() + known_before, sequence.tokens.end()}});
}

SchedulerStats Scheduler::State::stats() const {
  SchedulerStats stats = stats_;
  stats.num_evicted_tokens = account_.cache().num_evicted_tokens();
  stats.num_running = static_cast<int32_t>(running_.size());
  stats.num_waiting = static_cast<int32_t>(waiting_.size()) + num_deferred_;
  stats.num_free_pages = account_.pool().num_free();
  stats.num_cached_pages = account_.cache().num_pages();
  stats.num_evictable_pages = account_.cache().num_evictable();
  return stats;
}

}  // namespace ingot::scheduler
