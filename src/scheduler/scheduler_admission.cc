#include <algorithm>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "scheduler/scheduler_state.h"

namespace ingot::scheduler {
namespace {

// Looking for cached prefixes takes time, so a step does not go through the whole queue.
constexpr int kAttemptsPerStep = 16;

bool reads_prefix_cache(const Sequence& sequence) {
  return sequence.request.reads_prefix_cache && !sequence.request.wants_prompt_logits;
}

// Of what both know, in tokens of whole pages.
int32_t shared_prefix(const Sequence& a, const Sequence& b) {
  const int32_t end = std::min(a.num_known(), b.num_known()) / kPageTokens * kPageTokens;
  int32_t shared = 0;
  while (shared < end && std::memcmp(a.tokens.data() + shared, b.tokens.data() + shared,
                                     kPageTokens * sizeof(int32_t)) == 0) {
    shared += kPageTokens;
  }
  return shared;
}

}  // namespace

void Scheduler::State::admit(base::Instant now) {
  for (int attempt = 0; attempt < kAttemptsPerStep && !waiting_.empty(); ++attempt) {
    Sequence& sequence = **waiting_.begin();
    if (!has_lane_for(sequence)) return;
    const bool may_preempt = victim_for(sequence) != nullptr;
    if (!may_preempt && (free_slots_.empty() || is_sure_not_to_fit(sequence))) return;
    if (defer(sequence)) continue;
    if (!open_holding(sequence) && !make_room_for(sequence)) return;
    if (free_slots_.empty()) preempt(*victim_for(sequence));
    start(sequence, now);
  }
}

// Those of lower priority do not keep it waiting.
bool Scheduler::State::has_lane_for(const Sequence& sequence) const {
  const auto num_prefilling = std::ranges::count_if(running_, [&](const Sequence* other) {
    return other->phase == Sequence::Phase::kPrefilling &&
           other->request.priority >= sequence.request.priority;
  });
  return num_prefilling < config_.max_prefilling;
}

bool Scheduler::State::is_sure_not_to_fit(const Sequence& sequence) const {
  if (blocked_.sequence != &sequence) return false;
  const int64_t inserted = account_.cache().num_inserted_tokens() - blocked_.num_inserted_tokens;
  const int64_t least_needed = blocked_.demand.num_needed - inserted / kPageTokens;
  return account_.num_available() < least_needed + static_cast<int64_t>(running_.size());
}

// Sets it aside if a running sequence is about to compute more of its prefix than is cached.
bool Scheduler::State::defer(Sequence& sequence) {
  if (cacheable(sequence).empty()) return false;
  const auto some_prefilling = [](const Sequence* other) {
    return other->phase == Sequence::Phase::kPrefilling;
  };
  if (std::ranges::none_of(running_, some_prefilling)) return false;
  const int32_t cached =
      account_.cache().match_length(sequence.request.cache_salt, sequence.tokens);
  int32_t num_shared = 0;
  Sequence* leader = leader_of(sequence, cached, num_shared);
  if (leader == nullptr) return false;
  waiting_.erase(&sequence);
  ++num_deferred_;
  sequence.phase = Sequence::Phase::kDeferred;
  sequence.leader = leader;
  sequence.prefix_awaited = num_shared;
  leader->followers.push_back(&sequence);
  return true;
}

Sequence* Scheduler::State::leader_of(const Sequence& sequence, int32_t num_cached,
                                      int32_t& num_shared) const {
  Sequence* leader = nullptr;
  num_shared = num_cached;
  for (Sequence* other : running_) {
    // Others go before somebody of lower priority, so its prefix may be long in coming.
    if (other->request.priority < sequence.request.priority) break;
    if (other->phase != Sequence::Phase::kPrefilling || other->is_stalled) continue;
    if (other->request.cache_salt != sequence.request.cache_salt) continue;
    const int32_t shared = shared_prefix(sequence, *other);
    const bool is_still_computed = other->holding.num_entered * kPageTokens < shared;
    if (shared <= num_shared || !is_still_computed) continue;
    leader = other;
    num_shared = shared;
  }
  return leader;
}

bool Scheduler::State::is_preemptible(const Sequence& sequence) const {
  return sequence.usage.num_preemptions < config_.max_preemptions;
}

std::span<const int32_t> Scheduler::State::cacheable(const Sequence& sequence) const {
  if (!account_.shares() || !reads_prefix_cache(sequence)) return {};
  return sequence.tokens;
}

int32_t Scheduler::State::pages_to_promise(const Sequence& sequence) const {
  if (!is_preemptible(sequence)) return pages_for(sequence.max_positions());
  // Beyond what is known, the page that the first drawn token needs, if it ever does.
  return pages_for(std::min(sequence.num_known() + 1, sequence.max_positions()));
}

bool Scheduler::State::open_holding(Sequence& sequence) {
  const auto headroom = static_cast<int32_t>(running_.size());  // each may need a page soon
  PageDemand demand;
  if (account_.open(sequence.holding, sequence.request.cache_salt, cacheable(sequence),
                    pages_to_promise(sequence), headroom, step_, demand)) {
    return true;
  }
  blocked_ = {.sequence = &sequence,
              .demand = demand,
              .num_inserted_tokens = account_.cache().num_inserted_tokens()};
  return false;
}

Sequence* Scheduler::State::last_preemptible() const {
  for (auto it = running_.rbegin(); it != running_.rend(); ++it) {
    if (is_preemptible(**it)) return *it;
  }
  return nullptr;
}

// Who has to make room for it, if anybody.
Sequence* Scheduler::State::victim_for(const Sequence& sequence) const {
  Sequence* last = last_preemptible();
  const bool is_lower = last != nullptr && last->request.priority < sequence.request.priority;
  return is_lower ? last : nullptr;
}

// Takes pages from sequences of lower priority, if that can be enough, and opens the holding that
// could not be opened. Pages that victims share with others do not become free, so it may be in
// vain.
bool Scheduler::State::make_room_for(Sequence& sequence) {
  int64_t obtainable = 0;
  for (const Sequence* other : running_) {
    if (other->request.priority >= sequence.request.priority || !is_preemptible(*other)) continue;
    const auto held = static_cast<int32_t>(other->holding.pages.size());
    obtainable += std::max(held, other->holding.num_promised) + 1;  // one of headroom
  }
  if (obtainable < blocked_.demand.num_missing) return false;
  while (Sequence* victim = victim_for(sequence)) {
    preempt(*victim);
    if (open_holding(sequence)) return true;
  }
  return false;
}

void Scheduler::State::start(Sequence& sequence, base::Instant now) {
  waiting_.erase(&sequence);
  if (blocked_.sequence == &sequence) blocked_ = {};
  sequence.phase = Sequence::Phase::kPrefilling;
  sequence.is_stalled = false;
  sequence.slot = free_slots_.back();
  free_slots_.pop_back();
  sequence.num_told_pages = 0;
  const int32_t num_found = sequence.holding.num_entered * kPageTokens;
  count_admission(sequence, num_found);
  sequence.num_computed = num_found;
  // The last row is wanted for its logits, or for the hidden state that the MTP layer goes on from.
  const bool needs_state = config_.writes_mtp_rows || config_.speculation != SpeculationMode::kOff;
  sequence.repeats_last = num_found > 0 && (needs_state || num_found == sequence.num_known());
  if (!sequence.timings.admitted) sequence.timings.admitted = now;
  running_.insert(std::ranges::lower_bound(running_, &sequence, GoesFirst()), &sequence);
}

void Scheduler::State::count_admission(Sequence& sequence, int32_t num_found) {
  const int32_t prompt = sequence.num_prompt_tokens;
  const int32_t before = sequence.num_ever_computed;
  if (!sequence.timings.admitted) stats_.num_lookup_tokens += prompt;
  const int32_t of_prompt = std::max(0, std::min(num_found, prompt) - before);
  const int32_t of_output = std::max(0, num_found - std::max(before, prompt));
  sequence.usage.num_cached_tokens += of_prompt;
  stats_.num_hit_tokens += of_prompt;
  stats_.num_reused_output_tokens += of_output;
  sequence.num_ever_computed = std::max(before, num_found);
}

// Back into the queue with those whose prefix is there now.
void Scheduler::State::release_followers(Sequence& leader, int32_t num_entered) {
  std::erase_if(leader.followers, [&](Sequence* follower) {
    if (follower->prefix_awaited / kPageTokens > num_entered) return false;
    follower->phase = Sequence::Phase::kWaiting;
    follower->leader = nullptr;
    --num_deferred_;
    waiting_.insert(follower);
    return true;
  });
}

void Scheduler::State::stop_running(Sequence& sequence, PageAccount::Entered entered) {
  account_.close(sequence.holding, step_, entered);
  released_slots_.push_back(sequence.slot);
  free_slots_.push_back(sequence.slot);
  sequence.slot = -1;
  std::erase(running_, &sequence);
  release_followers(sequence, std::numeric_limits<int32_t>::max());
}

void Scheduler::State::preempt(Sequence& sequence) {
  stop_running(sequence, PageAccount::Entered::kStays);
  sequence.phase = Sequence::Phase::kWaiting;
  sequence.num_computed = 0;
  sequence.repeats_last = false;
  ++sequence.usage.num_preemptions;
  ++stats_.num_preemptions;
  waiting_.insert(&sequence);
  preempted_in_this_step_ = true;
}

// A page for the next row of everybody who decodes, in the order of who goes first.
void Scheduler::State::secure_decode_pages() {
  for (size_t i = 0; i < running_.size();) {
    Sequence& sequence = *running_[i];
    if (sequence.phase == Sequence::Phase::kPrefilling ||
        account_.grow(sequence.holding, pages_for(sequence.num_known()))) {
      ++i;
      continue;
    }
    // This one or a later one: who cannot be preempted has all its pages promised.
    Sequence* victim = last_preemptible();
    CHECK(victim != nullptr, "a page that was promised cannot be had");
    preempt(*victim);
  }
}

}  // namespace ingot::scheduler
