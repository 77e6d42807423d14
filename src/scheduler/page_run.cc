#include "scheduler/page_run.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/check.h"

namespace ingot::scheduler {

int32_t PageRun::num_common_pages(std::span<const int32_t> tokens) const {
  const auto num_whole_pages = static_cast<int32_t>(
      std::min<size_t>(static_cast<size_t>(size()), tokens.size() / kPageTokens));
  const int32_t* wanted = tokens.data();
  for (int32_t i = 0; i < num_whole_pages; ++i, wanted += kPageTokens) {
    const PageTokens& held = (*this)[i].tokens;
    if (!std::equal(held.begin(), held.end(), wanted)) return i;
  }
  return num_whole_pages;
}

void PageRun::push_back(const Page& page) {
  const auto count = static_cast<size_t>(size());
  if (pages_.size() == pages_.capacity()) reallocate(count + count / 8 + 1);
  pages_.push_back(page);
}

void PageRun::pop_back() {
  CHECK(!empty());
  pages_.pop_back();
  return_unused_memory();
}

PageRun PageRun::take_front(int32_t num_pages) {
  CHECK(num_pages >= 0 && num_pages <= size());
  const auto from = pages_.begin() + static_cast<std::ptrdiff_t>(begin_);
  PageRun front;
  front.pages_.assign(from, from + num_pages);
  drop_front(num_pages);
  return front;
}

void PageRun::drop_front(int32_t num_pages) {
  CHECK(num_pages >= 0 && num_pages <= size());
  begin_ += static_cast<size_t>(num_pages);
  return_unused_memory();
}

void PageRun::reallocate(size_t capacity) {
  std::vector<Page> pages;
  pages.reserve(capacity);
  pages.insert(pages.end(), pages_.begin() + static_cast<std::ptrdiff_t>(begin_), pages_.end());
  pages_ = std::move(pages);
  begin_ = 0;
}

void PageRun::return_unused_memory() {
  const auto count = static_cast<size_t>(size());
  // A few pages are not worth a call of the allocator each.
  if (pages_.capacity() - count > count / 4 + 4) reallocate(count);
}

}  // namespace ingot::scheduler
