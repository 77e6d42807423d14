#include "shadow/page_tables.h"

#include <algorithm>

#include "base/check.h"

namespace ingot::shadow {

using base::error;

PageTables::PageTables(int32_t num_pages, int32_t num_slots)
    : tables_(static_cast<size_t>(num_slots)), num_sharers_(static_cast<size_t>(num_pages)) {}

void PageTables::release(int32_t slot) {
  Table& table = of_slot(slot);
  for (const int32_t page : table.pages) {
    if (--num_sharers_[static_cast<size_t>(page)] == 0) --num_pages_in_use_;
  }
  table = {};
}

base::Result<PageTables::Table*> PageTables::take(int32_t slot, scheduler::RequestId request) {
  if (slot < 0 || slot >= static_cast<int32_t>(tables_.size())) {
    return error("request {} is in slot {}, which does not exist", request, slot);
  }
  for (const Table& other : tables_) {
    if (other.taken && other.request == request && &other != &tables_[static_cast<size_t>(slot)]) {
      return error("request {} is in two slots", request);
    }
  }
  Table& table = tables_[static_cast<size_t>(slot)];
  if (table.taken && table.request != request) {
    return error("slot {} is used by two sequences, requests {} and {}", slot, table.request,
                 request);
  }
  table.taken = true;
  table.request = request;
  return &table;
}

base::Status PageTables::append(Table& table, std::span<const int32_t> pages) {
  for (const int32_t page : pages) {
    if (page < 0 || page >= static_cast<int32_t>(num_sharers_.size())) {
      return error("request {} is given page {}, which does not exist", table.request, page);
    }
    if (std::ranges::find(table.pages, page) != table.pages.end()) {
      return error("request {} is given page {} twice", table.request, page);
    }
    table.pages.push_back(page);
    if (num_sharers_[static_cast<size_t>(page)]++ == 0) ++num_pages_in_use_;
  }
  return {};
}

int64_t PageTables::cache_slot(const Table& table, int32_t position) {
  const auto index = static_cast<size_t>(position / scheduler::kPageTokens);
  CHECK(index < table.pages.size());
  return int64_t{table.pages[index]} * scheduler::kPageTokens + position % scheduler::kPageTokens;
}

}  // namespace ingot::shadow
