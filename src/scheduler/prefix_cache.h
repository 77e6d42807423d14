#pragma once

#include <cstdint>
#include <functional>
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
// steps that the caller gives and that never falls from one call to the next; within a step the
// order of the calls decides. One thread uses it.
class PrefixCache {
 private:
  struct Node;

 public:
  // The end of a locked path: holds every page from the root to it. Made and ended by the cache
  // alone; moved, never copied; must be given back to `unlock`.
  class Lock {
   public:
    Lock(Lock&& other) noexcept;
    // REQUIRES: this lock was moved from or given back.
    Lock& operator=(Lock&& other) noexcept;
    ~Lock();

   private:
    friend class PrefixCache;
    explicit Lock(Node& end) : end_(&end) {}

    Node* end_;  // null: moved from or given back
  };

  // Evicted pages go back to `pool`, which must outlive this.
  explicit PrefixCache(PagePool& pool);
  PrefixCache(const PrefixCache&) = delete;
  PrefixCache& operator=(const PrefixCache&) = delete;
  // Gives all pages back to the pool. REQUIRES: every lock was given back.
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
  // REQUIRES: `page` is neither free nor in a tree.
  bool extend(Lock& lock, std::span<const int32_t> page_tokens, int32_t page, int64_t step);

  // Ends the lock; its path was last used at `step`.
  void unlock(Lock lock, int64_t step);

  // The same, and what nobody else holds or goes on from is given back to the pool, from the end of
  // the path inwards: for a path whose pages may be wrong.
  void forget(Lock lock, int64_t step);

  // Gives up to `num_pages` unlocked pages back to the pool; says how many.
  int32_t evict(int32_t num_pages);

  int32_t num_pages() const { return num_pages_; }          // all that are held, by all salts
  int32_t num_evictable() const { return num_evictable_; }  // of them, those that nothing locks
  int64_t num_evicted_tokens() const { return num_evicted_tokens_; }    // since the start
  int64_t num_inserted_tokens() const { return num_inserted_tokens_; }  // since the start
  // Heap bytes that are held, near enough: for the memory that a cached token takes. Visits every
  // node.
  int64_t memory_bytes() const;

  // The page numbers that the trees hold, in no order.
  std::vector<int32_t> held_pages() const;
  // Stops the process if trees, counts and order of eviction do not fit together.
  void check_invariants() const;

 private:
  struct Match;

  static Match find(Node& root, std::span<const int32_t> tokens);
  Node& split(Node& lower, int32_t num_pages);
  Node& move_on(Node& end, Node& next);
  void replace_parent(Node& node);
  void add_lock(Node& node);
  void remove_lock(Node& node);
  int32_t release_from_end(Node& leaf, int32_t num_pages);
  void remove_leaf(Node& leaf);
  void remove_tree_if_empty(const Node& root);
  void advance_to(int64_t step);
  std::vector<const Node*> nodes() const;
  void check_node(const Node& node) const;

  PagePool& pool_;
  std::map<std::string, std::unique_ptr<Node>, std::less<>> roots_;  // by salt
  // The leaves that nothing locks, by last use: what is evicted next comes first.
  std::map<int64_t, Node*> evictable_leaves_;
  int64_t step_ = 0;         // of the latest call
  int64_t num_unlocks_ = 0;  // so far: since steps never fall, their order is that of last use
  int32_t num_locks_ = 0;
  int32_t num_pages_ = 0;
  int32_t num_evictable_ = 0;
  int64_t num_evicted_tokens_ = 0;
  int64_t num_inserted_tokens_ = 0;
};

}  // namespace ingot::scheduler
