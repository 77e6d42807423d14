#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ingot::scheduler {

// Positions that one page of the cache holds.
inline constexpr int32_t kPageTokens = 16;

// Chosen by whoever adds requests; never used twice.
using RequestId = uint64_t;

// What to compute in one step: some tokens for each of some sequences, prefill and decode alike. A
// few kilobytes of plain data, so that it can be sent to other ranks. The executor keeps the page
// tables, by slot, and is told only what changed.
struct Batch {
  struct Sequence {
    RequestId request = 0;
    int32_t slot = 0;            // which page table; stable while the sequence runs
    int32_t first_position = 0;  // of tokens[0]; everything before it is in the cache
    std::vector<int32_t> tokens = {};
    // Rows after those of `tokens`, for tokens that the executor drafts itself. They have logits.
    int32_t num_draft_tokens = 0;
    std::vector<int32_t> new_pages = {};   // appended to the slot's table since the last step
    std::vector<int32_t> logit_rows = {};  // indices into tokens whose logits are wanted
    int32_t num_read_only_tokens = 0;      // of the tokens, the first ones, which must not write
    bool draws = false;  // `tokens` end with the last one known: what follows is to be drawn
  };

  std::vector<Sequence> sequences;
  std::vector<int32_t> released_slots;  // whose tables are empty again, before this step
};

// What came of a batch, in its order.
struct StepResult {
  struct Sequence {
    // Empty if the batch's `draws` is false. Else the accepted drafts and then one more, drawn,
    // whose row is not in the cache: 1 to num_draft_tokens + 1 tokens.
    std::vector<int32_t> tokens = {};
    std::string error = {};  // not empty: this sequence failed, and its tokens count for nothing
  };

  std::vector<Sequence> sequences;
};

}  // namespace ingot::scheduler
