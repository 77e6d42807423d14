#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/clock.h"
#include "scheduler/depth_search.h"
#include "scheduler/draft_acceptance.h"

namespace ingot::scheduler {

// How many tokens to draft for every sequence of a step.
enum class SpeculationMode : uint8_t {
  kOff,
  kFixed,  // always max_draft_tokens
  kAuto,   // by measured goodput
};

// One step, as the choice of a depth sees it.
struct StepObservation {
  int32_t num_decoding = 0;        // sequences that drew a token after decoding rows
  int32_t num_prefill_tokens = 0;  // rows of the others
  int32_t depth = 0;               // drafts that were asked for
  base::Duration duration{};
  // By position in the chain: how often a draft there was computed, and how often accepted. What
  // stands beyond `depth` is ignored.
  std::span<const int32_t> num_drafted = {};
  std::span<const int32_t> num_accepted = {};
};

// Chooses the depth of every step. With kAuto from what was measured: how often drafts were
// accepted, and how long steps of about this many sequences and prefill rows took at each depth. A
// draft that is accepted always is still worth nothing where its rows cost more than they bring, so
// goodput decides: tokens drawn a second. Deterministic.
//
// Where drafts leave fewer rows to prefill than there would be, those rows are computed in a later
// step; a step's time a row is then added for each.
class DraftDepth {
 public:
  // REQUIRES: max_draft_tokens >= 0; 0 if the mode is kOff.
  DraftDepth(SpeculationMode mode, int32_t max_draft_tokens);

  // For a step that decodes `num_decoding` sequences beside `num_prefill_tokens` rows of prefill,
  // as many as there would be without drafts. From 0 to max_draft_tokens. REQUIRES: neither is
  // negative.
  int32_t choose(int32_t num_decoding, int32_t num_prefill_tokens);

  // What came of a step; of the one that the last choice was for, if that was not observed yet.
  // REQUIRES: 0 <= depth <= max_draft_tokens, num_drafted and num_accepted of one size.
  void observe(const StepObservation& step);

 private:
  // Steps are alike if both their numbers have as many binary digits.
  struct Situation {
    int32_t num_decoding_bits = 0;
    int32_t num_prefill_bits = 0;
    auto operator<=>(const Situation&) const = default;
  };
  struct Choice {
    Situation situation = {};
    int32_t num_prefill_tokens = 0;
  };

  DepthSearch& search(Situation situation);
  std::optional<int32_t> depth_nearby(Situation situation) const;

  SpeculationMode mode_;
  int32_t max_draft_tokens_;
  DraftAcceptance acceptance_;
  std::map<Situation, DepthSearch> searches_;  // about a thousand at most
  std::optional<Choice> choice_;               // until its step is observed
};

}  // namespace ingot::scheduler
