#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ingot::scheduler {

// How often drafts are accepted, by their position in the chain: the probability that a draft is
// accepted if the one before it was. A property of the load, not of the batch, so all steps count.
//
// An exponentially weighted mean over about a thousand drafts of a position. A position whose
// drafts were not tried for long is forgotten over as many steps and then thought to be as good as
// the one before it, the first one good: so depths that a bad spell closed are tried again.
class DraftAcceptance {
 public:
  // REQUIRES: max_draft_tokens >= 0.
  explicit DraftAcceptance(int32_t max_draft_tokens)
      : positions_(static_cast<size_t>(max_draft_tokens)) {}

  // Of one step, by position: how often a draft was computed and how often accepted, a draft after
  // a rejected one never. Not every sequence needs to have as many drafts; which ones have fewer
  // should not depend on what is accepted.
  void observe(int32_t num_decoding, std::span<const int32_t> num_drafted,
               std::span<const int32_t> num_accepted);

  // Tokens that a sequence draws in a step, on average, with `depth` drafts: 1 to depth + 1.
  // coverage[i] is the share of sequences with i drafts that also have the next one.
  // REQUIRES: depth is at most max_draft_tokens and coverage.size().
  double expected_tokens(int32_t depth, std::span<const double> coverage) const;

 private:
  struct Position {
    double num_tried = 0;  // after an accepted one; decayed
    double num_accepted = 0;
  };

  std::vector<Position> positions_;
};

}  // namespace ingot::scheduler
