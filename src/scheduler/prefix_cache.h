#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scheduler/batch.h"
#include "scheduler/page_pool.h"

namespace ingot::scheduler {

// Which pages hold which prefixes: for every salt a radix tree whose edges are runs of whole pages
// with their tokens. Tokens are compared, not hashed, so a match is never a coincidence. Trees of
// different salts share nothing.
//
// A running sequence holds a lock on the path of its prefix. What is locked stays; of the rest the
// pages used longest ago are evicted first, from the ends of paths inwards. Recency is a count of
// steps that the caller gives. One thread uses it.
class PrefixCache {
 public:
  // The end of a locked path: holds every page from the root to it. Made and ended by the cache
  // alone; moved, never copied; must be given back to `unlock`.
  class Lock;

  // Evicted pages go back to `pool`, which must outlive this.
  explicit PrefixCache(PagePool& pool);
  ~PrefixCache();

  // How many of `tokens` are cached under `salt`: a multiple of kPageTokens. Changes nothing.
  int32_t match_length(std::string_view salt, std::span<const int32_t> tokens) const;

  // Locks the longest cached prefix of `tokens` and appends its pages to `pages`. With no tokens,
  // the root.
  Lock lock(std::string_view salt, std::span<const int32_t> tokens, int64_t step,
            std::vector<int32_t>& pages);

  // Goes one page on from the end of the lock, which then holds it: the page with these
  // kPageTokens tokens. True: `page` was taken into the tree, which owns it from now on. False: the
  // tree had such a page already; `page` stays the caller's.
  bool extend(Lock& lock, std::span<const int32_t> page_tokens, int32_t page, int64_t step);

  // Ends the lock; its path was last used at `step`.
  void unlock(Lock lock, int64_t step);

  // Gives up to `num_pages` unlocked pages back to the pool; says how many.
  int32_t evict(int32_t num_pages);

  int32_t num_pages() const;            // all that are held, by all salts
  int32_t num_evictable() const;        // of them, those that nothing locks
  int64_t num_evicted_tokens() const;   // since the start
  int64_t num_inserted_tokens() const;  // since the start
  // Heap bytes that are held, near enough: for the memory that a cached token takes.
  int64_t memory_bytes() const;

  // The page numbers that the trees hold, in no order.
  std::vector<int32_t> held_pages() const;
  // Stops the process if trees, counts and order of eviction do not fit together.
  void check_invariants() const;
};

}  // namespace ingot::scheduler
