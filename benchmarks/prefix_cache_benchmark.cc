// The prefix cache at the size of a busy server: 256 prompts of 20,000 tokens that share their
// first 12,000. Times are of one call unless the name says otherwise.
//
// The prompts take turns, so that neither they nor the tree stay in the processor's caches.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/random.h"
#include "scheduler/page_pool.h"
#include "scheduler/prefix_cache.h"

namespace ingot::scheduler {
namespace {

constexpr int32_t kNumPrompts = 256;
constexpr int32_t kPromptTokens = 20'000;
constexpr int32_t kSharedTokens = 12'000;
constexpr int32_t kOwnPages = (kPromptTokens - kSharedTokens) / kPageTokens;
constexpr int32_t kCachedPages = kSharedTokens / kPageTokens + kNumPrompts * kOwnPages;
constexpr int32_t kSparePages = 4096;
constexpr double kVocabularySize = 150'000;

void append_random_tokens(uint64_t seed, int32_t count, std::vector<int32_t>& tokens) {
  const base::RandomStream random = base::random_stream(seed, "prompt");
  for (int32_t i = 0; i < count; ++i) {
    const double uniform = random.uniform(static_cast<uint64_t>(i));
    tokens.push_back(static_cast<int32_t>(uniform * kVocabularySize));
  }
}

std::vector<int32_t> make_prompt(uint64_t number) {
  std::vector<int32_t> tokens;
  append_random_tokens(0, kSharedTokens, tokens);
  append_random_tokens(1 + number, kPromptTokens - kSharedTokens, tokens);
  return tokens;
}

class FilledCache {
 public:
  FilledCache() {
    for (uint64_t i = 0; i < kNumPrompts; ++i) prompts_.push_back(make_prompt(i));
    for (const std::vector<int32_t>& prompt : prompts_) insert(prompt);
    CHECK(cache_.num_pages() == kCachedPages);
  }

  const std::vector<int32_t>& next_prompt() { return prompts_[next_++ % kNumPrompts]; }

  PrefixCache::Lock lock(std::span<const int32_t> tokens) {
    pages_.clear();
    return cache_.lock("salt", tokens, ++step_, pages_);
  }
  void extend(PrefixCache::Lock& lock, std::span<const int32_t> tokens) {
    const int32_t page = pool_.allocate();
    if (!cache_.extend(lock, tokens, page, step_)) pool_.release(page);
  }
  void unlock(PrefixCache::Lock lock) { cache_.unlock(std::move(lock), ++step_); }

  void insert(std::span<const int32_t> tokens) {
    PrefixCache::Lock held = lock(tokens);
    for (size_t at = pages_.size() * kPageTokens; at < tokens.size(); at += kPageTokens) {
      extend(held, tokens.subspan(at, kPageTokens));
    }
    unlock(std::move(held));
  }

  void evict_all_but_prompts() {
    std::vector<PrefixCache::Lock> held;
    for (const std::vector<int32_t>& prompt : prompts_) held.push_back(lock(prompt));
    cache_.evict(cache_.num_evictable());
    for (PrefixCache::Lock& end : held) unlock(std::move(end));
    CHECK(cache_.num_pages() == kCachedPages);
  }

  PrefixCache& cache() { return cache_; }

 private:
  PagePool pool_{kCachedPages + kSparePages};
  PrefixCache cache_{pool_};
  std::vector<std::vector<int32_t>> prompts_;
  std::vector<int32_t> pages_;
  uint64_t next_ = 0;
  int64_t step_ = 0;
};

void match_20000_tokens(benchmark::State& state) {
  FilledCache filled;
  for (auto _ : state) {
    const int32_t length = filled.cache().match_length("salt", filled.next_prompt());
    CHECK(length == kPromptTokens);
  }
  const double num_tokens = static_cast<double>(filled.cache().num_pages()) * kPageTokens;
  state.counters["bytes_per_token"] =
      static_cast<double>(filled.cache().memory_bytes()) / num_tokens;
}
BENCHMARK(match_20000_tokens);

void lock_and_unlock_20000_tokens(benchmark::State& state) {
  FilledCache filled;
  for (auto _ : state) filled.unlock(filled.lock(filled.next_prompt()));
}
BENCHMARK(lock_and_unlock_20000_tokens);

void extend_by_a_page(benchmark::State& state) {
  FilledCache filled;
  std::vector<int32_t> answer;
  append_random_tokens(kNumPrompts + 1, kSparePages * kPageTokens, answer);
  const std::span<const int32_t> tokens = answer;
  while (state.KeepRunningBatch(kSparePages)) {
    PrefixCache::Lock held = filled.lock({});
    for (size_t at = 0; at < tokens.size(); at += kPageTokens) {
      filled.extend(held, tokens.subspan(at, kPageTokens));
    }
    state.PauseTiming();
    filled.unlock(std::move(held));
    filled.evict_all_but_prompts();
    state.ResumeTiming();
  }
}
BENCHMARK(extend_by_a_page);

// The cache is full: a prompt that nobody sent before takes the place of the oldest one.
void replace_a_prompt_by_500_new_pages(benchmark::State& state) {
  FilledCache filled;
  std::vector<std::vector<int32_t>> new_prompts;
  for (uint64_t i = 0; i < 2 * kNumPrompts; ++i) new_prompts.push_back(make_prompt(1000 + i));
  size_t next = 0;
  for (auto _ : state) {
    CHECK(filled.cache().evict(kOwnPages) == kOwnPages);
    filled.insert(new_prompts[next++ % new_prompts.size()]);
    CHECK(filled.cache().num_pages() == kCachedPages);
  }
}
BENCHMARK(replace_a_prompt_by_500_new_pages);

}  // namespace
}  // namespace ingot::scheduler
