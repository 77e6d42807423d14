#include "scheduler/draft_depth.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/check.h"

namespace ingot::scheduler {
namespace {

int32_t num_bits(int32_t number) { return std::bit_width(static_cast<uint32_t>(number)); }

// Drafts displace at most half of the prefill. A step with less yet is of another kind: what was
// offered was not there.
bool is_as_offered(int32_t num_offered, int32_t num_computed) {
  return num_computed >= num_offered - num_offered / 2;
}

// Seconds of the step, and those that displaced prefill will take.
double seconds_with_displaced(const StepObservation& step, int32_t num_offered) {
  const double seconds = base::seconds(step.duration);
  const int32_t num_displaced = num_offered - step.num_prefill_tokens;
  if (num_displaced <= 0 || step.depth == 0) return seconds;
  const double num_drafts = std::accumulate(step.num_drafted.begin(), step.num_drafted.end(), 0.0);
  const double displaced = std::min<double>(num_displaced, num_drafts);
  return seconds * (1 + displaced / (step.num_decoding + num_drafts + step.num_prefill_tokens));
}

}  // namespace

DraftDepth::DraftDepth(SpeculationMode mode, int32_t max_draft_tokens)
    : mode_(mode), max_draft_tokens_(max_draft_tokens), acceptance_(max_draft_tokens) {
  CHECK(max_draft_tokens >= 0);
  CHECK(mode != SpeculationMode::kOff || max_draft_tokens == 0);
}

int32_t DraftDepth::choose(int32_t num_decoding, int32_t num_prefill_tokens) {
  CHECK(num_decoding >= 0 && num_prefill_tokens >= 0);
  choice_.reset();
  if (mode_ != SpeculationMode::kAuto) return max_draft_tokens_;
  if (num_decoding == 0) return 0;
  const Situation situation{num_bits(num_decoding), num_bits(num_prefill_tokens)};
  choice_ = {.situation = situation, .num_prefill_tokens = num_prefill_tokens};
  return search(situation).next_depth();
}

void DraftDepth::observe(const StepObservation& step) {
  CHECK(step.depth >= 0 && step.depth <= max_draft_tokens_);
  const std::optional<Choice> choice = std::exchange(choice_, std::nullopt);
  if (mode_ != SpeculationMode::kAuto || step.num_decoding == 0) return;
  CHECK(step.num_drafted.size() == step.num_accepted.size());
  const size_t num_positions = std::min(step.num_drafted.size(), static_cast<size_t>(step.depth));
  const std::span num_drafted = step.num_drafted.first(num_positions);
  acceptance_.observe(step.num_decoding, num_drafted, step.num_accepted.first(num_positions));
  // Clocks of simulations may stand still.
  if (step.duration.count() <= 0) return;

  Situation situation{num_bits(step.num_decoding), num_bits(step.num_prefill_tokens)};
  int32_t num_offered = step.num_prefill_tokens;
  if (choice) {
    // Drafts that displace prefill must not change the situation in which they are compared.
    if (!is_as_offered(choice->num_prefill_tokens, step.num_prefill_tokens)) return;
    situation = choice->situation;
    num_offered = choice->num_prefill_tokens;
  }
  const double seconds = seconds_with_displaced(step, num_offered) / step.num_decoding;
  search(situation).observe(step.depth, seconds, step.num_decoding, num_drafted, acceptance_);
}

DepthSearch& DraftDepth::search(Situation situation) {
  const auto found = searches_.find(situation);
  if (found != searches_.end()) return found->second;
  return searches_.try_emplace(situation, max_draft_tokens_, depth_nearby(situation)).first->second;
}

std::optional<int32_t> DraftDepth::depth_nearby(Situation situation) const {
  std::optional<int32_t> depth;
  int32_t smallest_distance = INT32_MAX;
  for (const auto& [other, search] : searches_) {
    if (search.is_climbing()) continue;
    const int32_t distance = std::abs(other.num_decoding_bits - situation.num_decoding_bits) +
                             std::abs(other.num_prefill_bits - situation.num_prefill_bits);
    if (distance >= smallest_distance) continue;
    smallest_distance = distance;
    depth = search.best_depth();
  }
  return depth;
}

}  // namespace ingot::scheduler
