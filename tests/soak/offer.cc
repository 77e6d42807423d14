#include "soak/offer.h"

#include <chrono>
#include <utility>

#include "base/random.h"
#include "simulation/dice.h"

namespace ingot::soak {
namespace {

void spoil(Offer::Flaw flaw, const PlanLimits& limits, engine::EngineRequest& request) {
  switch (flaw) {
    case Offer::Flaw::kNone:
      return;
    case Offer::Flaw::kEmptyPrompt:
      request.prompt.clear();
      return;
    case Offer::Flaw::kUnknownId:
      request.prompt.back() = limits.vocab_size;
      return;
    case Offer::Flaw::kTooLong:
      request.max_tokens = limits.max_request_tokens;
      return;
    case Offer::Flaw::kNegativeMaxTokens:
      request.max_tokens = -1;
      return;
    case Offer::Flaw::kMinAboveMaxTokens:
      request.max_tokens = 0;
      request.min_tokens = 1;
      return;
    case Offer::Flaw::kUnknownStopId:
      request.stop_token_ids.push_back(-7);
      return;
    case Offer::Flaw::kEmptyStopString:
      request.stop_strings.emplace_back();
      return;
    case Offer::Flaw::kTemperature:
      request.sampling.temperature = -0.5;
      return;
    case Offer::Flaw::kTopP:
      request.sampling.top_p = 0;
      return;
  }
}

}  // namespace

Offer draw_offer(uint64_t seed, uint64_t number, size_t num_plans) {
  simulation::Dice dice(
      base::random_stream(base::random_stream(seed, "offers").word(number), "offer"));
  Offer offer;
  offer.plan = static_cast<size_t>(dice.between(0, static_cast<int32_t>(num_plans) - 1));
  if (dice.chance(0.03)) {
    offer.flaw = static_cast<Offer::Flaw>(dice.between(
        static_cast<int32_t>(Offer::Flaw::kEmptyPrompt), static_cast<int32_t>(Offer::Flaw::kTopP)));
  }
  if (dice.chance(0.15)) {
    offer.leave = static_cast<Offer::Leave>(
        dice.between(static_cast<int32_t>(Offer::Leave::kAtOnce),
                     static_cast<int32_t>(Offer::Leave::kLongAfterItsEnd)));
  }
  offer.leave_tokens = static_cast<size_t>(dice.between(1, 40));
  offer.leave_delay = std::chrono::microseconds(dice.between(0, dice.chance(0.5) ? 3000 : 300000));
  if (dice.chance(0.06)) offer.time_limit = std::chrono::milliseconds(dice.between(-5, 1500));
  if (dice.chance(0.2)) offer.priority = dice.between(-1, 2);
  if (dice.chance(0.3)) offer.cache_salt = dice.chance(0.5) ? "a" : "b";
  if (dice.chance(0.3)) offer.max_draft_tokens = dice.between(0, 3);
  return offer;
}

engine::EngineRequest request_of(const Offer& offer, const PlanPool& plans,
                                 const PlanLimits& limits, base::Instant now) {
  engine::EngineRequest request = plans.request(offer.plan);
  request.priority = offer.priority;
  request.cache_salt = offer.cache_salt;
  request.max_draft_tokens = offer.max_draft_tokens;
  if (offer.time_limit) request.deadline = now + *offer.time_limit;
  spoil(offer.flaw, limits, request);
  return request;
}

}  // namespace ingot::soak
