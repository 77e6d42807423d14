#pragma once

#include <cstdint>
#include <span>

namespace ingot::scheduler {

// One prefilling sequence's part in a step.
struct PrefillShare {
  int32_t rows_left = 0;  // that it could use
  int32_t min_rows = 1;   // fewer would get it nowhere
  int32_t max_rows = 0;   // at most as many in this step
  int32_t rows = 0;       // what it gets: 0, or min_rows to min(rows_left, max_rows)
};

// Divides `budget` rows among sequences that stand in the order of who goes first: half to the
// first one, the rest to those that have the fewest rows left. So the first one never waits for
// others, and a short one never for long ones.
void share_prefill(std::span<PrefillShare> shares, int32_t budget);

}  // namespace ingot::scheduler
