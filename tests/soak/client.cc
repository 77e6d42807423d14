#include "soak/client.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/random.h"
#include "soak/watched_engine.h"

namespace ingot::soak {

using namespace std::chrono_literals;
using scheduler::FinishReason;

namespace {

// Nobody waits so long for any news, on the slowest machine.
constexpr base::Duration kPatience = 300s;

}  // namespace

void Client::run() {
  last_news_ = load_.clock.now();
  bool wants_more = true;
  while (!load_.findings.any()) {
    const base::Instant now = load_.clock.now();
    leave(now);
    const bool may_submit = wants_more && talks_.size() < manner_.window;
    if (may_submit && next_at_ <= now) {
      wants_more = now < manner_.ends_at && submit_next();
      continue;
    }
    if (talks_.empty() && !wants_more) return;
    if (!talks_.empty() && now - last_news_ > kPatience) {
      return complain(talks_.begin()->first, "there is no news of it");
    }
    base::Duration wait = 1s;
    if (may_submit) wait = std::min(wait, next_at_ - now);
    for (const auto& [number, talk] : talks_) {
      if (talk.leaves_at) wait = std::min(wait, *talk.leaves_at - now);
    }
    listen(std::max(wait, base::Duration(0)));
  }
  for (const auto& [number, talk] : talks_) load_.engine.cancel(*talk.id);
}

// False: there are no more offers.
bool Client::submit_next() {
  uint64_t number = load_.next_offer;
  do {
    if (number >= manner_.end_offer) return false;
  } while (!load_.next_offer.compare_exchange_weak(number, number + 1));
  Talk talk{.offer = draw_offer(load_.seed, number, load_.plans.size()),
            .id = std::make_shared<std::atomic<scheduler::RequestId>>(0)};
  const base::Instant now = load_.clock.now();
  const double share = base::random_stream(load_.seed, "gaps").uniform(number);
  next_at_ = now + std::chrono::duration_cast<base::Duration>(manner_.gap_max * share);
  engine::EngineRequest request = request_of(talk.offer, load_.plans, load_.limits, now);
  talk.deadline = request.deadline;
  if (talk.offer.leave == Offer::Leave::kAfterDelay) talk.leaves_at = now + talk.offer.leave_delay;
  talk.leaves = talk.offer.leave == Offer::Leave::kAfterTokens;
  const auto submitted = load_.engine.submit(std::move(request), sink_of(number, talk));
  if (submitted.has_value() != (talk.offer.flaw == Offer::Flaw::kNone)) {
    complain(number, submitted ? "it was not refused" : submitted.error().message);
    return false;
  }
  if (!submitted) {
    ++load_.num_refused;
    return true;
  }
  *talk.id = *submitted;
  if (talk.offer.leave == Offer::Leave::kAtOnce) {
    talk.leaves = true;
    load_.engine.cancel(*submitted);
  }
  talks_.emplace(number, std::move(talk));
  return true;
}

// On the engine's thread, where a client that streams would go away.
engine::UpdateSink Client::sink_of(uint64_t number, const Talk& talk) const {
  engine::UpdateSink sink = queue_.sink(number);
  if (talk.offer.leave != Offer::Leave::kAfterTokens) return sink;
  return [sink = std::move(sink), id = talk.id, left = talk.offer.leave_tokens,
          &engine = load_.engine](engine::EngineUpdate&& update) mutable {
    left -= std::min(left, update.tokens.size());
    if (left == 0 && *id != 0) engine.cancel(*id);
    sink(std::move(update));
  };
}

void Client::leave(base::Instant now) {
  for (auto& [number, talk] : talks_) {
    if (!talk.leaves_at || *talk.leaves_at > now) continue;
    talk.leaves_at.reset();
    talk.leaves = true;
    load_.engine.cancel(*talk.id);
  }
}

void Client::listen(base::Duration time_limit) {
  std::optional<engine::UpdateQueue::Entry> entry = queue_.wait_for(time_limit);
  if (!entry) return;
  last_news_ = load_.clock.now();
  const auto found = talks_.find(entry->tag);
  if (found == talks_.end()) return complain(entry->tag, "it has news after its report");
  Talk& talk = found->second;
  const engine::EngineUpdate& update = entry->update;
  if (update.tokens.empty() && update.prompt_logprobs.empty() && !update.report &&
      update.num_prompt_tokens_done == 0) {
    return complain(entry->tag, "it has an update that tells nothing");
  }
  load_.num_tokens += std::ssize(update.tokens);
  const bool is_last = update.report.has_value();
  append(talk.answer, std::move(entry->update));
  if (!is_last) return;
  check_end(entry->tag, talk);
  talks_.erase(found);
}

void Client::check_silence() {
  if (const auto entry = queue_.wait_for(0s)) complain(entry->tag, "it has news after its report");
}

void Client::check_end(uint64_t number, const Talk& talk) {
  const engine::EngineReport& report = talk.answer.report;
  ++load_.num_answered;
  ++load_.num_by_reason[static_cast<size_t>(report.reason)];
  if (talk.offer.leave == Offer::Leave::kLongAfterItsEnd) load_.engine.cancel(*talk.id);
  // A watch that found something says it in this place.
  const bool is_planted = report.error == kPlantedFailure;
  if (report.reason == FinishReason::kError ? !is_planted : !report.error.empty()) {
    return complain(number, report.error);
  }
  if (base::Status status = load_.plans.check(talk.offer.plan, talk.answer); !status) {
    return complain(number, status.error().message);
  }
  switch (report.reason) {
    case FinishReason::kStop:
    case FinishReason::kLength:
      break;
    case FinishReason::kCancelled:
      if (!talk.leaves) complain(number, "it was cancelled, by nobody");
      break;
    case FinishReason::kDeadline:
      if (!talk.deadline || report.timings.finished < *talk.deadline) {
        complain(number, "it ended at a deadline that had not come");
      }
      break;
    case FinishReason::kError:
      break;
  }
}

void Client::complain(uint64_t number, std::string_view what) {
  load_.findings.add(fmt::format("offer {}: {}", number, what));
}

}  // namespace ingot::soak
