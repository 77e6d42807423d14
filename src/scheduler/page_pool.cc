#include "scheduler/page_pool.h"

#include "base/check.h"

namespace ingot::scheduler {

PagePool::PagePool(int32_t num_pages) {
  CHECK(num_pages >= 0);
  is_free_.assign(static_cast<size_t>(num_pages), 1);
  free_.reserve(is_free_.size());
  // So that the lowest page goes first.
  for (int32_t page = num_pages - 1; page >= 0; --page) free_.push_back(page);
}

bool PagePool::is_free(int32_t page) const {
  CHECK(page >= 0 && page < num_pages());
  return is_free_[static_cast<size_t>(page)] != 0;
}

int32_t PagePool::allocate() {
  CHECK(!free_.empty(), "no page is free");
  const int32_t page = free_.back();
  free_.pop_back();
  is_free_[static_cast<size_t>(page)] = 0;
  return page;
}

void PagePool::release(int32_t page) {
  CHECK(!is_free(page), "a page is released twice");
  is_free_[static_cast<size_t>(page)] = 1;
  free_.push_back(page);
}

}  // namespace ingot::scheduler
