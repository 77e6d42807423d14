#pragma once

#include <cstdint>
#include <vector>

namespace ingot::scheduler {

// Positions that one page of the cache holds.
inline constexpr int32_t kPageTokens = 16;

// What to compute in one step: some tokens for each of some sequences, prefill and decode alike. A
// few kilobytes of plain data, so that it can be sent to other ranks. The executor keeps the page
// tables, by slot, and is told only what changed.
struct Batch {
  struct Sequence {
    int32_t slot = 0;            // which page table; stable while the sequence runs
    int32_t first_position = 0;  // of tokens[0]; everything before it is in the cache
    std::vector<int32_t> tokens = {};
    int32_t num_draft_tokens = 0;          // of the tokens, the last ones that are guesses
    std::vector<int32_t> new_pages = {};   // appended to the slot's table since the last step
    std::vector<int32_t> logit_rows = {};  // indices into tokens whose logits are wanted
    int32_t num_read_only_tokens = 0;      // of the tokens, the first ones, which must not write
  };

  std::vector<Sequence> sequences;
  std::vector<int32_t> released_slots;  // whose tables are empty again, before this step
};

}  // namespace ingot::scheduler
