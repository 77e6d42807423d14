#include "scheduler/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "scheduler/page_run.h"

namespace ingot::scheduler {

// Locks end at the ends of nodes only, so what happens to one page of a node happens to all.
struct PrefixCache::Node {
  // By the tokens of their first page. An ordered map: no prompt can be made that is slow to find.
  using Children = std::map<PageTokens, std::unique_ptr<Node>>;

  PageRun run;             // empty in a root
  Node* parent = nullptr;  // null in a root
  Children children;
  Children::iterator place;  // in the parent's children, unless it is a root
  std::string_view salt;     // of a root
  int32_t num_locks = 0;     // that end here or below
  int64_t last_use = 0;      // the number of the last unlock here or below

  bool is_evictable_leaf() const { return parent != nullptr && num_locks == 0 && children.empty(); }
};

// Where a search came to: `num_pages` pages match, of them `num_end_pages` on the last edge.
struct PrefixCache::Match {
  Node* end = nullptr;
  int32_t num_end_pages = 0;
  int32_t num_pages = 0;
};

namespace {

// REQUIRES: at least kPageTokens tokens.
PageTokens first_page(std::span<const int32_t> tokens) {
  PageTokens page;
  std::copy_n(tokens.begin(), kPageTokens, page.begin());
  return page;
}

}  // namespace

PrefixCache::Lock::Lock(Lock&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}

PrefixCache::Lock& PrefixCache::Lock::operator=(Lock&& other) noexcept {
  CHECK(end_ == nullptr, "a lock was not given back");
  end_ = std::exchange(other.end_, nullptr);
  return *this;
}

PrefixCache::Lock::~Lock() { CHECK(end_ == nullptr, "a lock was not given back"); }

PrefixCache::PrefixCache(PagePool& pool) : pool_(pool) {}

PrefixCache::~PrefixCache() {
  CHECK(num_locks_ == 0, "a lock outlives the prefix cache");
  // Also takes the trees apart from their leaves: they may be too deep for recursion.
  evict(num_pages_);
  CHECK(roots_.empty());
}

int32_t PrefixCache::match_length(std::string_view salt, std::span<const int32_t> tokens) const {
  const auto root = roots_.find(salt);
  if (root == roots_.end()) return 0;
  return find(*root->second, tokens).num_pages * kPageTokens;
}

PrefixCache::Lock PrefixCache::lock(std::string_view salt, std::span<const int32_t> tokens,
                                    int64_t step, std::vector<int32_t>& pages) {
  advance_to(step);
  auto root = roots_.find(salt);
  if (root == roots_.end()) {
    root = roots_.emplace(salt, std::make_unique<Node>()).first;
    root->second->salt = root->first;
  }
  const Match match = find(*root->second, tokens);
  Node* end = match.end;
  if (match.num_end_pages < end->run.size()) end = &split(*end, match.num_end_pages);

  size_t index = pages.size() + static_cast<size_t>(match.num_pages);
  pages.resize(index);
  for (Node* node = end; node != nullptr; node = node->parent) {
    add_lock(*node);
    for (int32_t i = node->run.size() - 1; i >= 0; --i) pages[--index] = node->run[i].number;
  }
  ++num_locks_;
  return Lock(*end);
}

bool PrefixCache::extend(Lock& lock, std::span<const int32_t> page_tokens, int32_t page,
                         int64_t step) {
  CHECK(lock.end_ != nullptr);
  CHECK(page_tokens.size() == kPageTokens);
  CHECK(!pool_.is_free(page));
  advance_to(step);

  Node& end = *lock.end_;
  const PageTokens tokens = first_page(page_tokens);
  if (const auto next = end.children.find(tokens); next != end.children.end()) {
    lock.end_ = &move_on(end, *next->second);
    return false;
  }
  const bool nothing_else_ends_here = end.num_locks == 1 && end.children.empty();
  if (nothing_else_ends_here && end.parent != nullptr) {
    end.run.push_back({.tokens = tokens, .number = page});
  } else {
    const auto place = end.children.emplace(tokens, std::make_unique<Node>()).first;
    Node& child = *place->second;
    child.run.push_back({.tokens = tokens, .number = page});
    child.parent = &end;
    child.place = place;
    child.num_locks = 1;
    lock.end_ = &child;
  }
  ++num_pages_;
  num_inserted_tokens_ += kPageTokens;
  return true;
}

void PrefixCache::unlock(Lock lock, int64_t step) {
  CHECK(lock.end_ != nullptr);
  advance_to(step);
  ++num_unlocks_;
  --num_locks_;
  Node* root = nullptr;
  for (Node* node = std::exchange(lock.end_, nullptr); node != nullptr; node = node->parent) {
    remove_lock(*node);
    root = node;
  }
  remove_tree_if_empty(*root);
}

void PrefixCache::forget(Lock lock, int64_t step) {
  Node* node = lock.end_;
  const bool is_root = node->parent == nullptr;  // it may be gone with its last lock
  unlock(std::move(lock), step);
  while (!is_root && node->is_evictable_leaf()) {
    Node* parent = node->parent;
    const bool is_last = parent->parent == nullptr;
    release_from_end(*node, static_cast<int32_t>(node->run.size()));
    if (is_last) return;
    node = parent;
  }
}

int32_t PrefixCache::evict(int32_t num_pages) {
  int32_t num_evicted = 0;
  while (num_evicted < num_pages && !evictable_leaves_.empty()) {
    Node& leaf = *evictable_leaves_.begin()->second;
    num_evicted += release_from_end(leaf, num_pages - num_evicted);
  }
  return num_evicted;
}

// Up to `num_pages` of an evictable leaf, which is gone with its last one; says how many.
int32_t PrefixCache::release_from_end(Node& leaf, int32_t num_pages) {
  int32_t num_released = 0;
  for (; num_released < num_pages && !leaf.run.empty(); ++num_released) {
    pool_.release(leaf.run[leaf.run.size() - 1].number);
    leaf.run.pop_back();
  }
  if (leaf.run.empty()) remove_leaf(leaf);
  num_pages_ -= num_released;
  num_evictable_ -= num_released;
  num_evicted_tokens_ += int64_t{num_released} * kPageTokens;
  return num_released;
}

int64_t PrefixCache::memory_bytes() const {
  // What a map's node has beside its value, and the allocator beside what it gives.
  constexpr size_t kMapNodeBytes = 4 * sizeof(void*);
  constexpr size_t kAllocationBytes = sizeof(void*);
  constexpr size_t kNodeBytes =
      sizeof(Node) + sizeof(Node::Children::value_type) + kMapNodeBytes + 3 * kAllocationBytes;
  constexpr size_t kLeafBytes =
      sizeof(decltype(evictable_leaves_)::value_type) + kMapNodeBytes + kAllocationBytes;
  size_t bytes = evictable_leaves_.size() * kLeafBytes;
  for (const auto& [salt, root] : roots_) bytes += sizeof(salt) + salt.size();
  int64_t run_bytes = 0;
  for (const Node* node : nodes()) {
    bytes += kNodeBytes;
    run_bytes += node->run.memory_bytes();
  }
  return static_cast<int64_t>(bytes) + run_bytes;
}

std::vector<int32_t> PrefixCache::held_pages() const {
  std::vector<int32_t> pages;
  pages.reserve(static_cast<size_t>(num_pages_));
  for (const Node* node : nodes()) {
    for (int32_t i = 0; i < node->run.size(); ++i) pages.push_back(node->run[i].number);
  }
  return pages;
}

void PrefixCache::check_invariants() const {
  int32_t num_pages = 0;
  int32_t num_evictable = 0;
  size_t num_evictable_leaves = 0;
  for (const Node* node : nodes()) {
    check_node(*node);
    num_pages += node->run.size();
    if (node->num_locks == 0) num_evictable += node->run.size();
    if (node->is_evictable_leaf()) ++num_evictable_leaves;
  }
  CHECK(num_pages == num_pages_);
  CHECK(num_evictable == num_evictable_);
  // check_node found every one of them in its place.
  CHECK(num_evictable_leaves == evictable_leaves_.size());
  CHECK(num_inserted_tokens_ - num_evicted_tokens_ == int64_t{num_pages_} * kPageTokens);

  int32_t num_locks = 0;
  for (const auto& [salt, root] : roots_) {
    CHECK(root->parent == nullptr && root->salt == salt);
    CHECK(root->num_locks > 0 || !root->children.empty(), "an empty tree is kept");
    num_locks += root->num_locks;
  }
  CHECK(num_locks == num_locks_);

  std::vector<int32_t> pages = held_pages();
  std::ranges::sort(pages);
  CHECK(std::ranges::adjacent_find(pages) == pages.end(), "a page is held twice");
  for (const int32_t page : pages) CHECK(!pool_.is_free(page), "a held page is free");
}

void PrefixCache::check_node(const Node& node) const {
  CHECK(node.run.empty() == (node.parent == nullptr));
  int32_t num_locks_below = 0;
  for (auto place = node.children.begin(); place != node.children.end(); ++place) {
    const Node& child = *place->second;
    CHECK(child.parent == &node && child.place == place);
    CHECK(!child.run.empty() && child.run[0].tokens == place->first);
    CHECK(child.last_use <= node.last_use);
    num_locks_below += child.num_locks;
  }
  CHECK(node.num_locks >= num_locks_below);
  CHECK(node.last_use <= num_unlocks_);
  if (!node.is_evictable_leaf()) return;
  const auto place = evictable_leaves_.find(node.last_use);
  CHECK(place != evictable_leaves_.end() && place->second == &node);
}

PrefixCache::Match PrefixCache::find(Node& root, std::span<const int32_t> tokens) {
  Match match{.end = &root};
  while (tokens.size() >= kPageTokens) {
    const auto next = match.end->children.find(first_page(tokens));
    if (next == match.end->children.end()) break;
    match.end = next->second.get();
    match.num_end_pages = match.end->run.num_common_pages(tokens);
    match.num_pages += match.num_end_pages;
    if (match.num_end_pages < match.end->run.size()) break;
    tokens = tokens.subspan(static_cast<size_t>(match.num_end_pages) * kPageTokens);
  }
  return match;
}

// Makes the first `num_pages` pages of a node a new one above it, and returns that. The node itself
// keeps the rest, and so the locks that end at it stay as they are.
PrefixCache::Node& PrefixCache::split(Node& lower, int32_t num_pages) {
  CHECK(num_pages > 0 && num_pages < lower.run.size());
  std::unique_ptr<Node> owned_lower = std::exchange(lower.place->second, std::make_unique<Node>());
  Node& upper = *lower.place->second;
  upper.run = lower.run.take_front(num_pages);
  upper.parent = lower.parent;
  upper.place = lower.place;
  upper.num_locks = lower.num_locks;
  upper.last_use = lower.last_use;
  lower.parent = &upper;
  lower.place = upper.children.emplace(lower.run[0].tokens, std::move(owned_lower)).first;
  return upper;
}

// Moves a lock that ends at `end` on by the first page of the child `next`; returns its new end.
PrefixCache::Node& PrefixCache::move_on(Node& end, Node& next) {
  // A sequence that repeats what another one computed comes along a page at a time. Where nothing
  // else ends or branches off, the boundary moves with it, or a node would be left for every page.
  const bool boundary_is_ours =
      end.parent != nullptr && end.children.size() == 1 && end.num_locks == next.num_locks + 1;
  if (boundary_is_ours && next.run.size() > 1) {
    if (next.num_locks == 0) --num_evictable_;
    end.run.push_back(next.run[0]);
    next.run.drop_front(1);
    auto handle = end.children.extract(next.place);
    handle.key() = next.run[0].tokens;
    next.place = end.children.insert(std::move(handle)).position;
    return end;
  }
  Node& first = next.run.size() > 1 ? split(next, 1) : next;
  add_lock(first);
  if (boundary_is_ours) replace_parent(first);
  return first;
}

// Gives a node of one page that is its parent's only child the pages and the place of the parent,
// which is gone then. REQUIRES: no lock ends at the parent, and it is no root.
void PrefixCache::replace_parent(Node& node) {
  Node& parent = *node.parent;
  CHECK(node.run.size() == 1 && node.num_locks == parent.num_locks);
  parent.run.push_back(node.run[0]);
  node.run = std::move(parent.run);
  std::unique_ptr<Node> owned_node = std::move(node.place->second);
  node.parent = parent.parent;
  node.place = parent.place;
  node.place->second = std::move(owned_node);
}

void PrefixCache::add_lock(Node& node) {
  if (node.num_locks == 0) {
    num_evictable_ -= node.run.size();
    if (node.is_evictable_leaf()) evictable_leaves_.erase(node.last_use);
  }
  ++node.num_locks;
}

void PrefixCache::remove_lock(Node& node) {
  --node.num_locks;
  node.last_use = num_unlocks_;
  if (node.num_locks > 0) return;
  num_evictable_ += node.run.size();
  if (node.is_evictable_leaf()) evictable_leaves_.emplace(node.last_use, &node);
}

// Of a node whose pages are gone.
void PrefixCache::remove_leaf(Node& leaf) {
  Node& parent = *leaf.parent;
  evictable_leaves_.erase(leaf.last_use);
  parent.children.erase(leaf.place);
  if (parent.is_evictable_leaf()) evictable_leaves_.emplace(parent.last_use, &parent);
  if (parent.parent == nullptr) remove_tree_if_empty(parent);
}

void PrefixCache::remove_tree_if_empty(const Node& root) {
  if (root.num_locks == 0 && root.children.empty()) roots_.erase(roots_.find(root.salt));
}

void PrefixCache::advance_to(int64_t step) {
  CHECK(step >= step_, "steps never fall");
  step_ = step;
}

std::vector<const PrefixCache::Node*> PrefixCache::nodes() const {
  std::vector<const Node*> all;
  for (const auto& [salt, root] : roots_) all.push_back(root.get());
  for (size_t i = 0; i < all.size(); ++i) {
    for (const auto& [tokens, child] : all[i]->children) all.push_back(child.get());
  }
  return all;
}

}  // namespace ingot::scheduler
