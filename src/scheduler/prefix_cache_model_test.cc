// The prefix cache against a model too simple to be wrong: a map from every cached prefix to its
// page and its last use. Few different tokens, so that prefixes collide all the time.

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include "scheduler/prefix_cache.h"

namespace ingot::scheduler {
namespace {

constexpr int32_t kNumPages = 24;
constexpr std::array<std::string_view, 2> kSalts = {"", "salt"};

using Tokens = std::vector<int32_t>;

// Pages of three kinds that differ in their last or in their first token alone.
Tokens page_of_kind(int32_t kind) {
  Tokens tokens(kPageTokens, 7);
  if (kind == 1) tokens.back() = 8;
  if (kind == 2) tokens.front() = 6;
  return tokens;
}

Tokens append(Tokens tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

// One call. What does not apply in the state that it meets does nothing.
struct Operation {
  enum class Kind : uint8_t { kLock, kExtend, kUnlock, kEvict, kMatch };

  Kind kind = Kind::kLock;
  int32_t salt = 0;
  std::vector<int32_t> page_kinds;  // of the tokens to look for; the last one of a page to add
  int32_t num_more_tokens = 0;      // that fill no page
  int32_t number = 0;               // of the lock, modulo how many there are; of pages to evict
  bool in_next_step = false;
};

std::ostream& operator<<(std::ostream& stream, const Operation& operation) {
  constexpr std::array<std::string_view, 5> kNames = {"lock", "extend", "unlock", "evict", "match"};
  stream << kNames[static_cast<size_t>(operation.kind)] << " salt " << operation.salt << " pages";
  for (const int32_t kind : operation.page_kinds) stream << ' ' << kind;
  return stream << " and " << operation.num_more_tokens << ", number " << operation.number
                << (operation.in_next_step ? ", in the next step" : "");
}

rc::Gen<Operation> any_operation() {
  using rc::gen::inRange;
  using Kind = Operation::Kind;
  const auto kind = rc::gen::weightedElement<Kind>({{3, Kind::kLock},
                                                    {10, Kind::kExtend},
                                                    {3, Kind::kUnlock},
                                                    {2, Kind::kEvict},
                                                    {2, Kind::kMatch}});
  const auto page_kind = rc::gen::weightedElement<int32_t>({{4, 0}, {2, 1}, {1, 2}});
  const auto page_kinds = rc::gen::mapcat(inRange<size_t>(1, 7), [page_kind](size_t count) {
    return rc::gen::container<std::vector<int32_t>>(count, page_kind);
  });
  return rc::gen::build<Operation>(
      rc::gen::set(&Operation::kind, kind),
      rc::gen::set(&Operation::salt, rc::gen::weightedElement<int32_t>({{4, 0}, {1, 1}})),
      rc::gen::set(&Operation::page_kinds, page_kinds),
      rc::gen::set(&Operation::num_more_tokens, inRange(0, kPageTokens)),
      rc::gen::set(&Operation::number, inRange(0, 12)),
      rc::gen::set(&Operation::in_next_step, rc::gen::arbitrary<bool>()));
}

// Free pages, the one that was released last first.
class ModelPool {
 public:
  ModelPool() {
    free_.resize(kNumPages);
    std::iota(free_.rbegin(), free_.rend(), 0);
  }
  int32_t allocate() {
    const int32_t page = free_.back();
    free_.pop_back();
    return page;
  }
  void release(int32_t page) { free_.push_back(page); }
  bool is_free(int32_t page) const { return std::ranges::find(free_, page) != free_.end(); }

 private:
  std::vector<int32_t> free_;
};

class Model {
 public:
  struct Prefix {
    int32_t salt = 0;
    Tokens tokens;  // whole pages
  };

  Tokens longest_prefix(int32_t salt, const Tokens& tokens) const {
    Tokens prefix(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(
                                                       tokens.size() / kPageTokens * kPageTokens));
    while (!prefix.empty() && !pages_of(salt).contains(prefix)) shorten(prefix);
    return prefix;
  }

  // From its first page on.
  std::vector<int32_t> page_numbers(const Prefix& prefix) const {
    std::vector<int32_t> numbers;
    for (Tokens tokens = prefix.tokens; !tokens.empty(); shorten(tokens)) {
      numbers.insert(numbers.begin(), pages_of(prefix.salt).at(tokens).number);
    }
    return numbers;
  }

  void lock(const Prefix& prefix) { locks_.push_back(prefix); }
  const std::vector<Prefix>& locks() const { return locks_; }

  bool extend(size_t lock, const Tokens& tokens, int32_t number) {
    Prefix& prefix = locks_[lock];
    prefix.tokens = append(prefix.tokens, tokens);
    return pages_[static_cast<size_t>(prefix.salt)]
        .try_emplace(prefix.tokens, Page{.number = number})
        .second;
  }

  void unlock(size_t lock, int64_t step) {
    const Prefix prefix = locks_[lock];
    locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(lock));
    ++num_unlocks_;
    for (Tokens tokens = prefix.tokens; !tokens.empty(); shorten(tokens)) {
      pages_[static_cast<size_t>(prefix.salt)].at(tokens).last_use = {step, num_unlocks_};
    }
  }

  // The page that goes: of all that are not locked and that no other one follows, the one that was
  // used longest ago.
  std::optional<int32_t> evict_one() {
    std::optional<Prefix> oldest;
    LastUse oldest_use = {};
    for (int32_t salt = 0; salt < static_cast<int32_t>(kSalts.size()); ++salt) {
      for (const auto& [tokens, page] : pages_of(salt)) {
        if (is_locked(salt, tokens) || is_followed(salt, tokens)) continue;
        if (oldest.has_value() && oldest_use < page.last_use) continue;
        oldest = {.salt = salt, .tokens = tokens};
        oldest_use = page.last_use;
      }
    }
    if (!oldest.has_value()) return std::nullopt;
    auto& pages = pages_[static_cast<size_t>(oldest->salt)];
    const int32_t number = pages.at(oldest->tokens).number;
    pages.erase(oldest->tokens);
    return number;
  }

  int32_t num_pages() const { return static_cast<int32_t>(pages_[0].size() + pages_[1].size()); }
  int32_t num_evictable() const {
    int32_t count = 0;
    for (int32_t salt = 0; salt < static_cast<int32_t>(kSalts.size()); ++salt) {
      for (const auto& [tokens, page] : pages_of(salt)) count += is_locked(salt, tokens) ? 0 : 1;
    }
    return count;
  }

 private:
  using LastUse = std::pair<int64_t, int64_t>;  // step, then order of unlocks
  struct Page {
    int32_t number = 0;
    LastUse last_use = {};
  };

  static void shorten(Tokens& tokens) { tokens.resize(tokens.size() - kPageTokens); }
  static bool begins_with(const Tokens& tokens, const Tokens& begin) {
    return tokens.size() >= begin.size() && std::equal(begin.begin(), begin.end(), tokens.begin());
  }
  const std::map<Tokens, Page>& pages_of(int32_t salt) const {
    return pages_[static_cast<size_t>(salt)];
  }
  bool is_locked(int32_t salt, const Tokens& tokens) const {
    return std::ranges::any_of(locks_, [&](const Prefix& locked) {
      return locked.salt == salt && begins_with(locked.tokens, tokens);
    });
  }
  bool is_followed(int32_t salt, const Tokens& tokens) const {
    const auto next = pages_of(salt).upper_bound(tokens);
    return next != pages_of(salt).end() && begins_with(next->first, tokens);
  }

  std::array<std::map<Tokens, Page>, kSalts.size()> pages_;
  std::vector<Prefix> locks_;
  int64_t num_unlocks_ = 0;
};

// The cache and its model, doing the same.
class Pair {
 public:
  ~Pair() {
    for (PrefixCache::Lock& lock : locks_) cache_.unlock(std::move(lock), step_);
  }

  void apply(const Operation& operation) {
    if (operation.in_next_step) ++step_;
    const size_t lock = locks_.empty() ? 0 : static_cast<size_t>(operation.number) % locks_.size();
    switch (operation.kind) {
      case Operation::Kind::kLock:
        if (locks_.size() < 8) apply_lock(operation);
        break;
      case Operation::Kind::kExtend:
        if (!locks_.empty()) apply_extend(lock, page_of_kind(operation.page_kinds.back()));
        break;
      case Operation::Kind::kUnlock:
        if (!locks_.empty()) apply_unlock(lock);
        break;
      case Operation::Kind::kEvict:
        apply_evict(operation.number);
        break;
      case Operation::Kind::kMatch:
        break;  // as below
    }
    check_match(operation);
    check_counts();
  }

 private:
  static Tokens tokens_of(const Operation& operation) {
    Tokens tokens;
    for (const int32_t kind : operation.page_kinds) tokens = append(tokens, page_of_kind(kind));
    tokens.resize(tokens.size() + static_cast<size_t>(operation.num_more_tokens), 7);
    return tokens;
  }

  void apply_lock(const Operation& operation) {
    const Tokens tokens = tokens_of(operation);
    const Model::Prefix prefix = {.salt = operation.salt,
                                  .tokens = model_.longest_prefix(operation.salt, tokens)};
    std::vector<int32_t> pages;
    locks_.push_back(
        cache_.lock(kSalts[static_cast<size_t>(operation.salt)], tokens, step_, pages));
    model_.lock(prefix);
    RC_ASSERT(pages == model_.page_numbers(prefix));
  }

  void apply_extend(size_t lock, const Tokens& page_tokens) {
    if (pool_.num_free() == 0) apply_evict(1);
    if (pool_.num_free() == 0) return;
    const int32_t page = pool_.allocate();
    // Equal only if both released what was evicted so far in the same order.
    RC_ASSERT(page == model_pool_.allocate());
    const bool is_new = cache_.extend(locks_[lock], page_tokens, page, step_);
    RC_ASSERT(is_new == model_.extend(lock, page_tokens, page));
    if (is_new) {
      ++num_inserted_;
    } else {
      pool_.release(page);
      model_pool_.release(page);
    }
  }

  void apply_unlock(size_t lock) {
    cache_.unlock(std::move(locks_[lock]), step_);
    locks_.erase(locks_.begin() + static_cast<std::ptrdiff_t>(lock));
    model_.unlock(lock, step_);
  }

  void apply_evict(int32_t num_pages) {
    int32_t num_evicted = 0;
    for (; num_evicted < num_pages; ++num_evicted) {
      const std::optional<int32_t> page = model_.evict_one();
      if (!page.has_value()) break;
      model_pool_.release(*page);
    }
    RC_ASSERT(cache_.evict(num_pages) == num_evicted);
    for (int32_t page = 0; page < kNumPages; ++page) {
      RC_ASSERT(pool_.is_free(page) == model_pool_.is_free(page));
    }
    num_evicted_ += num_evicted;
  }

  void check_match(const Operation& operation) const {
    const Tokens tokens = tokens_of(operation);
    const auto length = static_cast<int32_t>(model_.longest_prefix(operation.salt, tokens).size());
    const std::string_view salt = kSalts[static_cast<size_t>(operation.salt)];
    RC_ASSERT(cache_.match_length(salt, tokens) == length);
  }

  void check_counts() const {
    cache_.check_invariants();
    RC_ASSERT(cache_.num_pages() == model_.num_pages());
    RC_ASSERT(cache_.num_evictable() == model_.num_evictable());
    RC_ASSERT(cache_.num_inserted_tokens() == num_inserted_ * kPageTokens);
    RC_ASSERT(cache_.num_evicted_tokens() == num_evicted_ * kPageTokens);
  }

  PagePool pool_{kNumPages};
  PrefixCache cache_{pool_};
  std::vector<PrefixCache::Lock> locks_;
  ModelPool model_pool_;
  Model model_;
  int64_t step_ = 0;
  int64_t num_inserted_ = 0;
  int64_t num_evicted_ = 0;
};

TEST(PrefixCache, EqualsAMapOfPrefixesAfterEveryCall) {
  // All given here and nothing by the environment, so that every run is the same.
  const rc::detail::TestParams parameters = {.seed = 20, .maxSuccess = 600, .maxSize = 200};
  rc::detail::TestListenerAdapter silence;
  int64_t num_operations = 0;
  const rc::detail::TestResult result = rc::detail::checkTestable(
      [&] {
        const auto operations = *rc::gen::container<std::vector<Operation>>(any_operation());
        Pair pair;
        for (const Operation& operation : operations) pair.apply(operation);
        num_operations += static_cast<int64_t>(operations.size());
      },
      rc::detail::TestMetadata{.id = "PrefixCache", .description = "equals its model"}, parameters,
      silence, std::unordered_map<std::string, rc::detail::Reproduce>());
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  EXPECT_TRUE(result.is<rc::detail::SuccessResult>()) << message.str();
  EXPECT_GT(num_operations, 20'000);
}

}  // namespace
}  // namespace ingot::scheduler
