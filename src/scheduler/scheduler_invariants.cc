#include <algorithm>
#include <vector>

#include "base/check.h"
#include "scheduler/scheduler_state.h"

namespace ingot::scheduler {

void Scheduler::State::check_invariants() const {
  std::vector<const PageHolding*> holdings;
  std::vector<uint8_t> slot_used(static_cast<size_t>(config_.num_slots));
  CHECK(std::ranges::is_sorted(running_, GoesFirst()));
  for (const Sequence* sequence : running_) {
    holdings.push_back(&sequence->holding);
    CHECK(sequence->runs() && find(sequence->request.id) == sequence);
    CHECK(slot_used[static_cast<size_t>(sequence->slot)]++ == 0, "two sequences have one slot");
    CHECK(
        sequence->in_flight || sequence->num_rows_left() >= 1 || sequence->request.max_tokens == 0,
        "a running sequence has nothing to compute");
    CHECK(sequence->in_flight || sequence->num_computed <= sequence->num_known());
    CHECK(sequence->num_computed <=
              static_cast<int32_t>(sequence->holding.pages.size()) * kPageTokens,
          "computed rows without pages");
    CHECK(static_cast<int32_t>(sequence->holding.pages.size()) <=
              pages_for(sequence->max_positions()),
          "more pages than the request can ever fill");
    CHECK(sequence->num_told_pages <= static_cast<int32_t>(sequence->holding.pages.size()));
    CHECK(sequence->usage.num_preemptions <= config_.max_preemptions);
    for (const Sequence* follower : sequence->followers) CHECK(follower->leader == sequence);
  }
  CHECK(running_.size() + free_slots_.size() == slot_used.size(), "a slot is lost");
  for (const int32_t slot : free_slots_) {
    CHECK(slot_used[static_cast<size_t>(slot)]++ == 0, "a free slot is used");
  }

  size_t num_waiting = 0, num_deferred = 0;
  for (const auto& [id, sequence] : requests_) {
    if (sequence->runs()) continue;
    const bool is_deferred = sequence->phase == Sequence::Phase::kDeferred;
    ++(is_deferred ? num_deferred : num_waiting);
    CHECK(sequence->holding.pages.empty() && !sequence->holding.lock && sequence->slot == -1,
          "who waits holds nothing");
    CHECK(!sequence->in_flight && sequence->followers.empty());
    CHECK(waiting_.contains(sequence.get()) != is_deferred);
    CHECK((sequence->leader != nullptr) == is_deferred);
    if (is_deferred) CHECK(sequence->leader->runs(), "it waits for somebody who does not run");
  }
  CHECK(num_waiting == waiting_.size() && num_deferred == static_cast<size_t>(num_deferred_));
  CHECK(num_waiting + num_deferred + running_.size() == requests_.size());
  CHECK(stats_.num_requests_added ==
            stats_.num_requests_finished + static_cast<int64_t>(requests_.size()),
        "a request is lost");
  account_.check_invariants(holdings);
}

}  // namespace ingot::scheduler
