#include "scheduler/prefix_cache.h"

#include <algorithm>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::scheduler {
namespace {

using Tokens = std::vector<int32_t>;
using Pages = std::vector<int32_t>;

// One page of tokens for every word, all of them the word.
Tokens prompt(std::initializer_list<int32_t> words) {
  Tokens tokens;
  for (const int32_t word : words) tokens.insert(tokens.end(), kPageTokens, word);
  return tokens;
}

Tokens prompt_of_pages(int32_t num_pages, int32_t first_word) {
  Tokens tokens;
  for (int32_t i = 0; i < num_pages; ++i) {
    tokens.insert(tokens.end(), kPageTokens, first_word + i);
  }
  return tokens;
}

// A cache with its pool, and the steps counted: every call is one step.
class PrefixCacheTest : public testing::Test {
 protected:
  PrefixCache::Lock lock(std::string_view salt, const Tokens& tokens, Pages* pages = nullptr) {
    Pages unwanted;
    return cache_.lock(salt, tokens, ++step_, pages == nullptr ? unwanted : *pages);
  }

  // Goes on by whole pages of tokens; how many of them were new. Others go back to the pool.
  int32_t extend(PrefixCache::Lock& lock, const Tokens& tokens) {
    int32_t num_new = 0;
    for (size_t at = 0; at < tokens.size(); at += kPageTokens) {
      const int32_t page = pool_.allocate();
      if (cache_.extend(lock, std::span(tokens).subspan(at, kPageTokens), page, ++step_)) {
        ++num_new;
      } else {
        pool_.release(page);
      }
    }
    return num_new;
  }

  void unlock(PrefixCache::Lock lock) { cache_.unlock(std::move(lock), ++step_); }

  // What a sequence does in its life: lock, extend, unlock. Gives the pages of the whole prompt.
  Pages insert(std::string_view salt, const Tokens& tokens) {
    unlock(insert_and_hold(salt, tokens));
    return pages_of(salt, tokens);
  }

  PrefixCache::Lock insert_and_hold(std::string_view salt, const Tokens& tokens) {
    PrefixCache::Lock held = lock(salt, tokens);
    const int32_t num_cached = cache_.match_length(salt, tokens);
    extend(held, Tokens(tokens.begin() + num_cached, tokens.end()));
    return held;
  }

  Pages pages_of(std::string_view salt, const Tokens& tokens) {
    Pages pages;
    unlock(lock(salt, tokens, &pages));
    return pages;
  }

  int32_t match(std::string_view salt, const Tokens& tokens) const {
    return cache_.match_length(salt, tokens) / kPageTokens;
  }

  void TearDown() override {
    cache_.check_invariants();
    EXPECT_EQ(cache_.num_pages() + pool_.num_free(), pool_.num_pages());
  }

  PagePool pool_{20'000};
  PrefixCache cache_{pool_};
  int64_t step_ = 0;
};

TEST_F(PrefixCacheTest, FindsWholePagesOfWhatWasInserted) {
  const Pages pages = insert("", prompt({1, 2, 3}));
  EXPECT_EQ(pages, (Pages{0, 1, 2}));
  EXPECT_EQ(cache_.num_pages(), 3);
  EXPECT_EQ(cache_.num_evictable(), 3);
  EXPECT_EQ(cache_.num_inserted_tokens(), 48);

  Tokens tokens = prompt({1, 2, 3});
  EXPECT_EQ(cache_.match_length("", tokens), 48);
  tokens.push_back(4);
  EXPECT_EQ(cache_.match_length("", tokens), 48);
  tokens.resize(47);
  EXPECT_EQ(cache_.match_length("", tokens), 32);
  tokens.resize(15);
  EXPECT_EQ(cache_.match_length("", tokens), 0);
  EXPECT_EQ(cache_.match_length("", {}), 0);
}

TEST_F(PrefixCacheTest, ComparesEveryToken) {
  insert("", prompt({1, 2, 3}));
  for (size_t differing = 0; differing < 48; ++differing) {
    Tokens tokens = prompt({1, 2, 3});
    ++tokens[differing];
    EXPECT_EQ(match("", tokens), static_cast<int32_t>(differing) / kPageTokens) << differing;
  }
  EXPECT_EQ(match("", prompt({2, 3})), 0);  // a prefix, not a part
}

TEST_F(PrefixCacheTest, AppendsThePagesOfTheLockedPrefix) {
  insert("", prompt({1, 2, 3, 4}));
  Pages pages = {77};
  PrefixCache::Lock held = lock("", prompt({1, 2, 9}), &pages);
  EXPECT_EQ(pages, (Pages{77, 0, 1}));
  EXPECT_EQ(cache_.num_evictable(), 2);
  unlock(std::move(held));
  EXPECT_EQ(cache_.num_evictable(), 4);
  EXPECT_EQ(cache_.num_pages(), 4);
}

TEST_F(PrefixCacheTest, SaltsNeverMeet) {
  const Pages of_alice = insert("alice", prompt({1, 2}));
  EXPECT_EQ(match("bob", prompt({1, 2})), 0);
  EXPECT_EQ(match("", prompt({1, 2})), 0);
  EXPECT_EQ(match("alic", prompt({1, 2})), 0);
  EXPECT_EQ(match(std::string_view("alice\0", 6), prompt({1, 2})), 0);
  const Pages of_bob = insert("bob", prompt({1, 2}));
  EXPECT_EQ(of_alice, (Pages{0, 1}));
  EXPECT_EQ(of_bob, (Pages{2, 3}));
  EXPECT_EQ(match("alice", prompt({1, 2})), 2);
  EXPECT_EQ(cache_.num_pages(), 4);
}

TEST_F(PrefixCacheTest, TheEmptyLockHoldsNothing) {
  Pages pages;
  PrefixCache::Lock held = lock("salt", {}, &pages);
  EXPECT_TRUE(pages.empty());
  cache_.check_invariants();
  EXPECT_EQ(extend(held, prompt({1})), 1);
  EXPECT_EQ(cache_.num_evictable(), 0);

  PrefixCache::Lock other = lock("salt", {});
  unlock(std::move(held));
  EXPECT_EQ(cache_.num_evictable(), 1);
  EXPECT_EQ(cache_.evict(1), 1);
  cache_.check_invariants();  // the tree is empty and stays, for the other one is in it
  EXPECT_EQ(extend(other, prompt({2})), 1);
  unlock(std::move(other));
  EXPECT_EQ(match("salt", prompt({2})), 1);
}

TEST_F(PrefixCacheTest, EmptyTreesTakeNoMemory) {
  const int64_t bytes = cache_.memory_bytes();
  unlock(lock("looked up", prompt({1, 2})));
  EXPECT_EQ(cache_.memory_bytes(), bytes);
  for (int32_t salt = 0; salt < 100; ++salt) {
    insert("a salt that is too long to be stored in place " + std::to_string(salt), prompt({1}));
  }
  EXPECT_GT(cache_.memory_bytes(), bytes + 100 * 100);
  EXPECT_EQ(cache_.evict(100), 100);
  EXPECT_EQ(cache_.memory_bytes(), bytes);
}

TEST_F(PrefixCacheTest, SplitsUnderLocks) {
  PrefixCache::Lock whole = insert_and_hold("", prompt({1, 2, 3, 4, 5}));
  PrefixCache::Lock two = lock("", prompt({1, 2, 9}));
  cache_.check_invariants();
  PrefixCache::Lock four = lock("", prompt({1, 2, 3, 4}));
  cache_.check_invariants();
  EXPECT_EQ(extend(two, prompt({9})), 1);
  cache_.check_invariants();
  EXPECT_EQ(cache_.num_pages(), 6);
  EXPECT_EQ(cache_.num_evictable(), 0);

  unlock(std::move(whole));
  EXPECT_EQ(cache_.num_evictable(), 1);  // 5
  // The first lock's node was split twice and still ended where it ended.
  EXPECT_EQ(pages_of("", prompt({1, 2, 3, 4, 5})), (Pages{0, 1, 2, 3, 4}));
  unlock(std::move(four));
  EXPECT_EQ(cache_.num_evictable(), 3);  // 3 4 5
  EXPECT_EQ(pages_of("", prompt({1, 2, 9})), (Pages{0, 1, 5}));
  EXPECT_EQ(cache_.evict(100), 3);
  EXPECT_EQ(match("", prompt({1, 2, 3})), 2);
  unlock(std::move(two));
  EXPECT_EQ(cache_.num_evictable(), 3);
}

TEST_F(PrefixCacheTest, EvictsTheOldestLeafFirst) {
  insert("", prompt({1, 2, 3}));
  insert("", prompt({1, 4, 5}));
  insert("other", prompt({6}));
  pages_of("", prompt({1, 2, 3}));  // used again: 1 4 5 is the oldest now

  EXPECT_EQ(cache_.evict(1), 1);
  EXPECT_EQ(match("", prompt({1, 4, 5})), 2);
  EXPECT_EQ(cache_.evict(1), 1);
  EXPECT_EQ(match("", prompt({1, 4, 5})), 1);
  EXPECT_EQ(cache_.evict(1), 1);
  EXPECT_EQ(match("other", prompt({6})), 0);
  EXPECT_EQ(match("", prompt({1, 2, 3})), 3);
  for (int32_t num_left = 2; num_left >= 0; --num_left) {
    EXPECT_EQ(cache_.evict(1), 1);
    EXPECT_EQ(match("", prompt({1, 2, 3})), num_left);
    cache_.check_invariants();
  }
  EXPECT_EQ(cache_.num_evicted_tokens(), 6 * kPageTokens);
}

TEST_F(PrefixCacheTest, AParentIsEvictedByItsOwnLastUse) {
  insert("", prompt({1, 2}));
  insert("", prompt({3}));
  pages_of("", prompt({1}));  // the page before 2 was used after 3
  EXPECT_EQ(cache_.evict(2), 2);
  EXPECT_EQ(match("", prompt({3})), 0);
  EXPECT_EQ(match("", prompt({1, 2})), 1);
}

TEST_F(PrefixCacheTest, WithinAStepTheOrderOfUnlocksDecides) {
  PrefixCache::Lock first = insert_and_hold("", prompt({1}));
  PrefixCache::Lock second = insert_and_hold("", prompt({2}));
  PrefixCache::Lock third = insert_and_hold("", prompt({3}));
  ++step_;
  cache_.unlock(std::move(second), step_);
  cache_.unlock(std::move(third), step_);
  cache_.unlock(std::move(first), step_);
  EXPECT_EQ(cache_.evict(2), 2);
  EXPECT_EQ(match("", prompt({1})), 1);
}

TEST_F(PrefixCacheTest, NeverEvictsWhatIsLocked) {
  PrefixCache::Lock held = insert_and_hold("", prompt({1, 2, 3}));
  insert("", prompt({1, 4}));
  insert("", prompt({5, 6}));
  EXPECT_EQ(cache_.num_evictable(), 3);
  EXPECT_EQ(cache_.evict(100), 3);
  EXPECT_EQ(cache_.num_evictable(), 0);
  EXPECT_EQ(cache_.evict(100), 0);
  EXPECT_EQ(match("", prompt({1, 2, 3})), 3);
  unlock(std::move(held));
  EXPECT_EQ(cache_.evict(100), 3);
  EXPECT_EQ(pool_.num_free(), pool_.num_pages());
  EXPECT_EQ(cache_.evict(1), 0);
}

TEST_F(PrefixCacheTest, ForgetsAPathWhereNobodyElseHoldsIt) {
  insert("", prompt({1, 2, 3, 4}));
  insert("", prompt({1, 2, 5}));
  PrefixCache::Lock other = lock("", prompt({1, 2, 3}));
  PrefixCache::Lock failed = lock("", prompt({1, 2, 3, 4}));
  cache_.forget(std::move(failed), ++step_);
  cache_.check_invariants();
  EXPECT_EQ(match("", prompt({1, 2, 3, 4})), 3) << "the third is held, the first two go on";
  EXPECT_EQ(match("", prompt({1, 2, 5})), 3);
  cache_.forget(std::move(other), ++step_);
  cache_.check_invariants();
  EXPECT_EQ(match("", prompt({1, 2, 3})), 2);
  PrefixCache::Lock rest = lock("", prompt({1, 2, 5}));
  cache_.forget(std::move(rest), ++step_);
  cache_.check_invariants();
  EXPECT_EQ(pool_.num_free(), pool_.num_pages());
  PrefixCache::Lock empty = lock("", {});
  cache_.forget(std::move(empty), ++step_);
  cache_.check_invariants();
}

TEST_F(PrefixCacheTest, EvictsNoMoreThanWasAskedFor) {
  insert("", prompt_of_pages(10, 1));
  EXPECT_EQ(cache_.evict(0), 0);
  EXPECT_EQ(cache_.evict(4), 4);
  EXPECT_EQ(cache_.num_pages(), 6);
  EXPECT_EQ(match("", prompt_of_pages(10, 1)), 6);
}

// Two sequences compute the same prompt side by side, and the second one is behind.
TEST_F(PrefixCacheTest, APageThatIsThereAlreadyStaysTheCallers) {
  PrefixCache::Lock ahead = lock("", {});
  PrefixCache::Lock behind = lock("", {});
  EXPECT_EQ(extend(ahead, prompt({1, 2, 3, 4})), 4);
  EXPECT_EQ(extend(behind, prompt({1, 2})), 0);
  cache_.check_invariants();
  EXPECT_EQ(cache_.num_pages(), 4);
  EXPECT_EQ(cache_.num_inserted_tokens(), 4 * kPageTokens);

  unlock(std::move(ahead));
  EXPECT_EQ(cache_.num_evictable(), 2);  // the lock that is behind holds what it came by
  EXPECT_EQ(extend(behind, prompt({3})), 0);
  EXPECT_EQ(cache_.num_evictable(), 1);
  EXPECT_EQ(cache_.evict(100), 1);
  EXPECT_EQ(extend(behind, prompt({5, 6})), 2);
  EXPECT_EQ(match("", prompt({1, 2, 3, 5, 6})), 5);
  unlock(std::move(behind));
}

TEST_F(PrefixCacheTest, ComingAlongLeavesNoNodeForEveryPage) {
  const Tokens tokens = prompt_of_pages(1000, 1);
  insert("", tokens);
  const int64_t bytes = cache_.memory_bytes();
  PrefixCache::Lock first = lock("", {});
  PrefixCache::Lock second = lock("", {});
  for (int32_t i = 0; i < 1000; ++i) {
    const Tokens page(kPageTokens, 1 + i);
    EXPECT_EQ(extend(first, page), 0);
    EXPECT_EQ(extend(second, page), 0);
    if (i % 100 == 0) cache_.check_invariants();
  }
  unlock(std::move(first));
  unlock(std::move(second));
  EXPECT_LT(cache_.memory_bytes(), bytes + bytes / 4);
  EXPECT_EQ(match("", tokens), 1000);
}

TEST_F(PrefixCacheTest, GrowsInPlaceOnlyWhereNobodyElseEnds) {
  PrefixCache::Lock first = insert_and_hold("", prompt({1}));
  PrefixCache::Lock second = lock("", prompt({1}));
  EXPECT_EQ(extend(first, prompt({2})), 1);
  EXPECT_EQ(extend(second, prompt({3})), 1);
  cache_.check_invariants();
  unlock(std::move(first));
  EXPECT_EQ(cache_.num_evictable(), 1);
  EXPECT_EQ(match("", prompt({1, 2})), 2);
  EXPECT_EQ(match("", prompt({1, 3})), 2);
  unlock(std::move(second));
}

TEST_F(PrefixCacheTest, LocksAreMoved) {
  PrefixCache::Lock first = insert_and_hold("", prompt({1}));
  PrefixCache::Lock second = std::move(first);
  first = std::move(second);
  EXPECT_EQ(cache_.num_evictable(), 0);
  unlock(std::move(first));
  EXPECT_EQ(cache_.num_evictable(), 1);
}

TEST_F(PrefixCacheTest, OneChainOf100000Tokens) {
  const Tokens tokens = prompt_of_pages(6250, 1);
  Pages pages(6250);
  std::iota(pages.begin(), pages.end(), 0);
  EXPECT_EQ(insert("", tokens), pages);
  EXPECT_LT(cache_.memory_bytes(), 6 * 100'000);

  // Then a chain of 1,562 nodes: a lock ended at every fourth page.
  for (size_t num_pages = 4; num_pages <= 6250; num_pages += 4) {
    Pages unwanted;
    unlock(cache_.lock("", std::span(tokens).first(num_pages * kPageTokens), ++step_, unwanted));
  }
  cache_.check_invariants();
  EXPECT_EQ(pages_of("", tokens), pages);
  EXPECT_EQ(cache_.evict(250), 250);
  EXPECT_EQ(match("", tokens), 6000);
}

TEST_F(PrefixCacheTest, TenThousandSiblings) {
  insert("", prompt({1}));
  for (int32_t word = 0; word < 10'000; ++word) insert("", prompt({1, word}));
  EXPECT_EQ(cache_.num_pages(), 10'001);
  for (const int32_t word : {0, 1, 4999, 9999}) {
    EXPECT_EQ(pages_of("", prompt({1, word})), (Pages{0, 1 + word}));
  }
  EXPECT_EQ(match("", prompt({1, 10'000})), 1);
  // Oldest first; those that were used again are the last.
  EXPECT_EQ(cache_.evict(9996), 9996);
  for (const int32_t word : {0, 1, 4999, 9999}) EXPECT_EQ(match("", prompt({1, word})), 2);
}

TEST_F(PrefixCacheTest, TellsItsPages) {
  insert("", prompt({1, 2}));
  insert("", prompt({1, 3}));
  insert("other", prompt({1}));
  Pages pages = cache_.held_pages();
  std::ranges::sort(pages);
  EXPECT_EQ(pages, (Pages{0, 1, 2, 3}));
}

TEST(PrefixCache, GivesItsPagesBackInTheEnd) {
  PagePool pool(100);
  {
    PrefixCache cache(pool);
    Pages pages;
    for (int32_t word = 0; word < 10; ++word) {
      PrefixCache::Lock lock = cache.lock(std::to_string(word % 3), {}, 1, pages);
      for (int32_t i = 0; i < 10; ++i) {
        cache.extend(lock, prompt({word + i}), pool.allocate(), 1);
      }
      cache.unlock(std::move(lock), 1);
    }
    EXPECT_EQ(pool.num_free(), 0);
  }
  EXPECT_EQ(pool.num_free(), 100);
}

TEST(PrefixCacheDeathTest, StopsAtMisuse) {
  PagePool pool(2);
  PrefixCache cache(pool);
  Pages pages;
  EXPECT_DEATH(cache.lock("", {}, 1, pages), "a lock was not given back");
  PrefixCache::Lock lock = cache.lock("", {}, 5, pages);
  EXPECT_DEATH(cache.extend(lock, prompt({1}), 0, 5), "CHECK failed");  // the page is free
  const int32_t page = pool.allocate();
  EXPECT_DEATH(cache.extend(lock, prompt({1, 2}), page, 5), "CHECK failed");
  EXPECT_DEATH(cache.extend(lock, prompt({1}), page, 4), "steps never fall");
  PrefixCache::Lock moved = std::move(lock);
  EXPECT_DEATH(cache.extend(lock, prompt({1}), page, 5), "CHECK failed");
  EXPECT_DEATH(moved = cache.lock("", {}, 5, pages), "a lock was not given back");
  cache.unlock(std::move(moved), 5);
  EXPECT_DEATH(cache.unlock(std::move(moved), 5), "CHECK failed");
}

}  // namespace
}  // namespace ingot::scheduler
