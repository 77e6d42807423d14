#include "scheduler/page_account.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace ingot::scheduler {

PageAccount::PageAccount(int32_t num_pages, Sharing sharing)
    : sharing_(sharing), pool_(num_pages), cache_(pool_) {}

int32_t PageAccount::unfulfilled(const PageHolding& holding) {
  return std::max(0, holding.num_promised - static_cast<int32_t>(holding.pages.size()));
}

bool PageAccount::open(PageHolding& holding, std::string_view salt, std::span<const int32_t> tokens,
                       int32_t num_promised, int32_t headroom, int64_t step, PageDemand& demand) {
  CHECK(holding.pages.empty() && !holding.lock);
  if (shares()) holding.lock.emplace(cache_.lock(salt, tokens, step, holding.pages));
  holding.num_entered = static_cast<int32_t>(holding.pages.size());
  holding.num_promised = num_promised;
  demand.num_needed = unfulfilled(holding);
  // The lock may just have taken pages out of what could be evicted, so only now is it known.
  if (num_available() >= demand.num_needed + headroom) {
    promised_ += demand.num_needed;
    return true;
  }
  demand.num_missing = demand.num_needed + headroom - num_available();
  if (holding.lock) cache_.unlock(std::move(*holding.lock), step);
  holding = {};
  return false;
}

int32_t PageAccount::take_page() {
  if (pool_.num_free() == 0) cache_.evict(1);
  return pool_.allocate();
}

bool PageAccount::grow(PageHolding& holding, int32_t num_pages) {
  const auto held = static_cast<int32_t>(holding.pages.size());
  const int32_t beyond_promise = num_pages - std::max(held, holding.num_promised);
  if (beyond_promise > num_available()) return false;
  const int32_t promised_before = unfulfilled(holding);
  for (int32_t i = held; i < num_pages; ++i) holding.pages.push_back(take_page());
  promised_ -= promised_before - unfulfilled(holding);
  return true;
}

void PageAccount::enter(PageHolding& holding, std::span<const int32_t> computed, int64_t step) {
  if (!shares()) return;
  const auto num_full = static_cast<int32_t>(computed.size()) / kPageTokens;
  CHECK(num_full <= static_cast<int32_t>(holding.pages.size()));
  for (; holding.num_entered < num_full; ++holding.num_entered) {
    // The cache may have the page already, and the lock then takes that one out of what could be
    // evicted. Where all of that was promised, the page is entered later.
    if (num_available() == 0) return;
    const auto index = static_cast<size_t>(holding.num_entered);
    const int32_t page = holding.pages[index];
    const auto tokens = computed.subspan(index * kPageTokens, kPageTokens);
    if (!cache_.extend(*holding.lock, tokens, page, step)) holding.duplicates.push_back(page);
  }
}

void PageAccount::close(PageHolding& holding, int64_t step, Entered entered) {
  promised_ -= unfulfilled(holding);
  const auto own = static_cast<size_t>(holding.num_entered);
  for (size_t i = own; i < holding.pages.size(); ++i) pool_.release(holding.pages[i]);
  for (const int32_t page : holding.duplicates) pool_.release(page);
  if (holding.lock && entered == Entered::kIsForgotten) {
    cache_.forget(std::move(*holding.lock), step);
  } else if (holding.lock) {
    cache_.unlock(std::move(*holding.lock), step);
  }
  holding = {};
}

void PageAccount::check_invariants(std::span<const PageHolding* const> holdings) const {
  cache_.check_invariants();
  const auto num_pages = static_cast<size_t>(pool_.num_pages());
  std::vector<uint8_t> in_cache(num_pages), owned(num_pages);
  for (const int32_t page : cache_.held_pages()) {
    CHECK(!pool_.is_free(page), "a cached page is free");
    CHECK(in_cache[static_cast<size_t>(page)]++ == 0, "a page is cached twice");
  }
  int32_t promised = 0;
  for (const PageHolding* holding : holdings) {
    promised += unfulfilled(*holding);
    CHECK(holding->num_entered <= static_cast<int32_t>(holding->pages.size()));
    CHECK(holding->lock.has_value() == shares());
    for (size_t i = 0; i < holding->pages.size(); ++i) {
      const int32_t page = holding->pages[i];
      CHECK(!pool_.is_free(page), "a page in use is free");
      const bool is_own = static_cast<int32_t>(i) >= holding->num_entered ||
                          std::ranges::find(holding->duplicates, page) != holding->duplicates.end();
      CHECK(is_own != (in_cache[static_cast<size_t>(page)] != 0), "a page has two owners or none");
      if (is_own) CHECK(owned[static_cast<size_t>(page)]++ == 0, "two sequences own a page");
    }
  }
  CHECK(promised == promised_ && num_available() >= 0, "more pages are promised than there are");
  const auto num_owned = std::ranges::count(owned, 1);
  CHECK(num_owned + cache_.num_pages() + pool_.num_free() == pool_.num_pages(), "a page is lost");
}

}  // namespace ingot::scheduler
