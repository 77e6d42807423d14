#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.h"

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
  // By position in the chain: how often a draft there was computed, and how often accepted.
  std::span<const int32_t> num_drafted = {};
  std::span<const int32_t> num_accepted = {};
};

// Chooses the depth of every step. With kAuto from what was measured: how often drafts were
// accepted, and how long steps of about this many sequences and prefill rows took at each depth. A
// draft that is accepted always is still worth nothing where its rows cost more than they bring, so
// goodput decides: tokens a second. Deterministic.
class DraftDepth {
 public:
  // REQUIRES: max_draft_tokens >= 0; 0 if the mode is kOff.
  DraftDepth(SpeculationMode mode, int32_t max_draft_tokens);

  // For a step that decodes `num_decoding` sequences beside up to `num_prefill_tokens` rows of
  // prefill. From 0 to max_draft_tokens.
  int32_t choose(int32_t num_decoding, int32_t num_prefill_tokens);

  // What came of a step.
  void observe(const StepObservation& step);
};

}  // namespace ingot::scheduler
