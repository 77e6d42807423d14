#pragma once

#include <cstdint>
#include <vector>

namespace ingot::scheduler {

// Which pages of the cache are free. Pages are numbers; the memory behind them is the executor's.
class PagePool {
 public:
  explicit PagePool(int32_t num_pages);

  int32_t num_pages() const { return static_cast<int32_t>(is_free_.size()); }
  int32_t num_free() const { return static_cast<int32_t>(free_.size()); }
  bool is_free(int32_t page) const;

  // REQUIRES: num_free() > 0.
  int32_t allocate();
  // REQUIRES: the page is not free.
  void release(int32_t page);

 private:
  std::vector<int32_t> free_;  // the last one goes first
  std::vector<uint8_t> is_free_;
};

}  // namespace ingot::scheduler
