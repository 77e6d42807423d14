#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "scheduler/page_pool.h"
#include "scheduler/prefix_cache.h"

namespace ingot::scheduler {

// How many pages hold `num_positions` positions.
constexpr int32_t pages_for(int64_t num_positions) {
  return static_cast<int32_t>((num_positions + kPageTokens - 1) / kPageTokens);
}

// The pages of one running sequence, in the order of its positions.
struct PageHolding {
  std::vector<int32_t> pages = {};
  // The first ones that the prefix cache has entered, and keeps while the lock is held.
  int32_t num_entered = 0;
  // Of these, the ones that are the holder's own: the cache had another page for the same tokens.
  std::vector<int32_t> duplicates = {};
  // As many pages as this it is sure to get.
  int32_t num_promised = 0;
  std::optional<PrefixCache::Lock> lock = {};
};

// What opening a holding takes.
struct PageDemand {
  int32_t num_needed = 0;   // pages, beyond the cached ones
  int32_t num_missing = 0;  // of them and of the headroom, that could not be had
};

// Who has which page. A page is free, or in the prefix cache, or one holder's own. What was
// promised can always be had: it is free or nobody's use keeps it from being evicted.
class PageAccount {
 public:
  enum class Sharing : uint8_t { kNone, kPrefixes };
  PageAccount(int32_t num_pages, Sharing sharing);

  // Pages that are neither held, nor in use, nor promised.
  int32_t num_available() const { return pool_.num_free() + cache_.num_evictable() - promised_; }

  // Begins a holding with the longest cached prefix of `tokens` (none for no tokens) and the
  // promise of `num_promised` pages in all. False, and nothing changes, if fewer than `headroom`
  // pages would stay available. `demand` says in either case what it took.
  bool open(PageHolding& holding, std::string_view salt, std::span<const int32_t> tokens,
            int32_t num_promised, int32_t headroom, int64_t step, PageDemand& demand);

  // Lets it have `num_pages` pages; false, and nothing changes, if they cannot be had.
  bool grow(PageHolding& holding, int32_t num_pages);

  // Enters the full pages of `computed`, the tokens whose rows are in the cache for good.
  void enter(PageHolding& holding, std::span<const int32_t> computed, int64_t step);

  // Gives everything back. What was entered stays in the cache as long as there is room, or, if its
  // rows may be wrong, only where others hold it or go on from it.
  enum class Entered : uint8_t { kStays, kIsForgotten };
  void close(PageHolding& holding, int64_t step, Entered entered = Entered::kStays);

  const PagePool& pool() const { return pool_; }
  const PrefixCache& cache() const { return cache_; }
  bool shares() const { return sharing_ == Sharing::kPrefixes; }

  // Stops the process unless every page is accounted for once. `holdings`: all that are open.
  void check_invariants(std::span<const PageHolding* const> holdings) const;

 private:
  static int32_t unfulfilled(const PageHolding& holding);
  int32_t take_page();

  Sharing sharing_;
  PagePool pool_;
  PrefixCache cache_;
  int32_t promised_ = 0;  // pages that holders are sure to get and do not have yet
};

}  // namespace ingot::scheduler
