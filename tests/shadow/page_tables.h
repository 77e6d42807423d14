#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "scheduler/batch.h"

namespace ingot::shadow {

// The executor's page tables, by slot, and who shares which page. Errors say what no scheduler may
// ask for.
class PageTables {
 public:
  struct Table {
    scheduler::RequestId request = 0;
    bool taken = false;
    std::vector<int32_t> pages = {};
    int32_t num_computed = 0;      // positions that are in the cache for good
    int32_t hidden_position = -1;  // whose hidden state is kept; -1: none
    bool decodes = false;          // its last rows drew a token
  };

  PageTables(int32_t num_pages, int32_t num_slots);

  // Empties the slot's table, which may be empty already: who was admitted and preempted before it
  // computed anything left none. REQUIRES: there is such a slot.
  void release(int32_t slot);
  // The slot's table, which is now this request's.
  base::Result<Table*> take(int32_t slot, scheduler::RequestId request);
  base::Status append(Table& table, std::span<const int32_t> pages);

  // Where position `position` of the table is kept. REQUIRES: a page of the table holds it.
  static int64_t cache_slot(const Table& table, int32_t position);

  // In how many tables a page is.
  int32_t num_sharers(int32_t page) const { return num_sharers_[static_cast<size_t>(page)]; }
  // Pages that are in any table.
  int32_t num_pages_in_use() const { return num_pages_in_use_; }
  const std::vector<Table>& tables() const { return tables_; }
  Table& of_slot(int32_t slot) { return tables_[static_cast<size_t>(slot)]; }
  const Table& of_slot(int32_t slot) const { return tables_[static_cast<size_t>(slot)]; }

 private:
  std::vector<Table> tables_;
  std::vector<int32_t> num_sharers_;
  int32_t num_pages_in_use_ = 0;
};

}  // namespace ingot::shadow
