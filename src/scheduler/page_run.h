#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "scheduler/batch.h"

namespace ingot::scheduler {

// The tokens whose rows one page holds.
using PageTokens = std::array<int32_t, kPageTokens>;

// Pages that follow each other in a prefix, with their tokens: an edge of a tree of PrefixCache.
// Grows at its end and shrinks at both, in constant time on average. A long one takes about 4.25
// bytes a token, and a quarter more at most: that is why it does not double when it grows.
class PageRun {
 public:
  struct Page {
    PageTokens tokens;
    int32_t number = 0;
  };

  bool empty() const { return size() == 0; }
  int32_t size() const { return static_cast<int32_t>(pages_.size() - begin_); }
  // REQUIRES: 0 <= index < size().
  const Page& operator[](int32_t index) const {
    return pages_[begin_ + static_cast<size_t>(index)];
  }

  // How many whole pages at its begin have the tokens that `tokens` begins with.
  int32_t num_common_pages(std::span<const int32_t> tokens) const;

  void push_back(const Page& page);
  // REQUIRES: not empty.
  void pop_back();
  // Takes the first `num_pages` out.
  // REQUIRES: 0 <= num_pages <= size().
  PageRun take_front(int32_t num_pages);
  void drop_front(int32_t num_pages);

  // On the heap.
  int64_t memory_bytes() const { return static_cast<int64_t>(pages_.capacity() * sizeof(Page)); }

 private:
  void reallocate(size_t capacity);
  void return_unused_memory();

  std::vector<Page> pages_;
  size_t begin_ = 0;  // the pages before it are gone
};

}  // namespace ingot::scheduler
