#include "engine/token_history.h"

#include <algorithm>

#include "base/check.h"
#include "base/random.h"

namespace ingot::engine {
namespace {

constexpr int32_t kEmpty = -1;
constexpr size_t kNumSlotsMin = 16;

}  // namespace

TokenHistory::TokenHistory(std::span<const int32_t> prompt) {
  for (const int32_t id : prompt) ++count_of(id).in_prompt;
}

// Where the id is, or the empty slot where it would go.
size_t TokenHistory::slot_of(int32_t id) const {
  const size_t last_slot = slots_.size() - 1;
  size_t slot = base::splitmix64(static_cast<uint64_t>(id)) & last_slot;
  while (slots_[slot] != kEmpty && counts_[static_cast<size_t>(slots_[slot])].id != id) {
    slot = (slot + 1) & last_slot;
  }
  return slot;
}

void TokenHistory::grow() {
  slots_.assign(std::max(kNumSlotsMin, 2 * slots_.size()), kEmpty);
  for (size_t i = 0; i < counts_.size(); ++i) {
    slots_[slot_of(counts_[i].id)] = static_cast<int32_t>(i);
  }
}

TokenHistory::Count& TokenHistory::count_of(int32_t id) {
  CHECK(id >= 0);
  if (4 * (counts_.size() + 1) > 3 * slots_.size()) grow();
  int32_t& index = slots_[slot_of(id)];
  if (index == kEmpty) {
    index = static_cast<int32_t>(counts_.size());
    counts_.push_back({.id = id});
  }
  return counts_[static_cast<size_t>(index)];
}

size_t TokenHistory::memory_bytes() const {
  return counts_.capacity() * sizeof(Count) + slots_.capacity() * sizeof(int32_t);
}

}  // namespace ingot::engine
