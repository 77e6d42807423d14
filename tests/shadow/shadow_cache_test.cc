// What the simulation's mutants cannot break: what an executor answers, and what a failure leaves.

#include "shadow/shadow_cache.h"

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "shadow/watched_executor.h"

namespace ingot::shadow {
namespace {

using scheduler::Batch;
using scheduler::StepResult;

constexpr scheduler::SchedulerConfig kConfig = {.num_pages = 8,
                                                .num_slots = 2,
                                                .max_context = 64,
                                                .max_step_tokens = 40,
                                                .speculation = scheduler::SpeculationMode::kFixed,
                                                .max_draft_tokens = 3};

std::vector<int32_t> prompt_of(int32_t size) {
  std::vector<int32_t> tokens(static_cast<size_t>(size));
  std::iota(tokens.begin(), tokens.end(), 100);
  return tokens;
}

// All of a request's prompt in slot `id`.
Batch prefill(scheduler::RequestId id, int32_t size, std::vector<int32_t> pages) {
  Batch batch;
  batch.sequences.push_back({.request = id,
                             .slot = static_cast<int32_t>(id),
                             .tokens = prompt_of(size),
                             .new_pages = std::move(pages),
                             .logit_rows = {size - 1},
                             .draws = true});
  return batch;
}

// Request 0, whose prompt has 20 tokens in pages 0 and 1, drew a 7.
ShadowCache after_prefill() {
  ShadowCache cache(kConfig);
  cache.add({.id = 0, .prompt = prompt_of(20), .max_tokens = 10, .cache_salt = "a"});
  const Batch batch = prefill(0, 20, {0, 1});
  EXPECT_TRUE(cache.begin_step(batch));
  EXPECT_TRUE(cache.end_step(batch, [](size_t) { return std::span<const int32_t>(); },
                             {.sequences = {{.tokens = {7}}}}));
  return cache;
}

// A step of request 0 that drafts 8, 9 and 3; says what is wrong with what was drawn.
std::string verdict_on(const StepResult::Sequence& drawn) {
  ShadowCache cache = after_prefill();
  Batch batch;
  batch.sequences.push_back({.first_position = 20,
                             .tokens = {7},
                             .num_draft_tokens = 3,
                             .logit_rows = {0},
                             .draws = true});
  EXPECT_TRUE(cache.begin_step(batch));
  const std::vector<int32_t> drafts = {8, 9, 3};
  const base::Status status =
      cache.end_step(batch, [&](size_t) { return std::span(drafts); }, {.sequences = {drawn}});
  return status ? "" : status.error().message;
}

TEST(ShadowCache, TakesDraftsAsFarAsTheyEqualWhatIsDrawn) {
  EXPECT_EQ(verdict_on({.tokens = {5}}), "");
  EXPECT_EQ(verdict_on({.tokens = {8, 9, 5}}), "");
  EXPECT_EQ(verdict_on({.tokens = {8, 9, 3, 5}}), "");
}

TEST(ShadowCache, ReportsDraftsThatWereVerifiedWrongly) {
  EXPECT_EQ(verdict_on({.tokens = {8, 5, 6}}),
            "request 0 accepted draft 1, which is not the one that was drawn");
  EXPECT_EQ(verdict_on({.tokens = {8, 9}}),
            "request 0 rejected draft 1, which is the token that was drawn");
  EXPECT_EQ(verdict_on({}), "request 0 drew 0 tokens after 3 drafts");
  EXPECT_EQ(verdict_on({.tokens = {8, 9, 3, 5, 6}}), "request 0 drew 5 tokens after 3 drafts");
}

// Request 1 finds page 0 in the cache.
std::string verdict_on_a_hit(ShadowCache& cache, const std::string& salt) {
  cache.add({.id = 1, .prompt = prompt_of(20), .max_tokens = 10, .cache_salt = salt});
  Batch batch = prefill(1, 20, {0, 2});
  Batch::Sequence& entry = batch.sequences[0];
  entry.first_position = 15;
  entry.tokens.erase(entry.tokens.begin(), entry.tokens.begin() + 15);
  entry.num_read_only_tokens = 1;
  entry.logit_rows = {4};
  batch.sequences.push_back(
      {.first_position = 20, .tokens = {7}, .logit_rows = {0}, .draws = true});
  const base::Status status = cache.begin_step(batch);
  return status ? "" : status.error().message;
}

TEST(ShadowCache, KeepsSaltsApart) {
  ShadowCache cache = after_prefill();
  EXPECT_EQ(verdict_on_a_hit(cache, "a"), "");
  ShadowCache other = after_prefill();
  EXPECT_EQ(verdict_on_a_hit(other, "b"),
            "request 1 reads position 0 in page 0, which holds another prefix");
}

TEST(ShadowCache, RowsOfAFailedSequenceAreNobodys) {
  ShadowCache cache(kConfig);
  cache.add({.id = 0, .prompt = prompt_of(20), .max_tokens = 10});
  const Batch batch = prefill(0, 20, {0, 1});
  EXPECT_TRUE(cache.begin_step(batch));
  EXPECT_TRUE(cache.end_step(batch, [](size_t) { return std::span<const int32_t>(); },
                             {.sequences = {{.error = "x"}}}));
  cache.remove(0);
  cache.add({.id = 1, .prompt = prompt_of(20), .max_tokens = 10});
  Batch next = prefill(1, 20, {0, 2});
  next.released_slots = {0};
  next.sequences[0].first_position = 15;
  next.sequences[0].tokens = {115, 116, 117, 118, 119};
  next.sequences[0].num_read_only_tokens = 1;
  next.sequences[0].logit_rows = {4};
  EXPECT_EQ(cache.begin_step(next).error().message,
            "request 1 reads position 0 in page 0, which holds another prefix");
}

// Draws a 7 for everybody.
class Sevens final : public scheduler::Executor {
 public:
  const StepResult& execute(const Batch& batch) override {
    ++num_batches;
    result_.sequences.assign(batch.sequences.size(), {.tokens = {7}});
    return result_;
  }
  int num_batches = 0;

 private:
  StepResult result_;
};

std::span<const int32_t> no_drafts(size_t) { return {}; }

TEST(WatchedExecutor, FailsWhatBreaksARuleAndAllThatFollows) {
  Sevens sevens;
  WatchedExecutor watched(kConfig, sevens, no_drafts);
  watched.add({.id = 0, .prompt = prompt_of(20), .max_tokens = 10});
  Batch batch = prefill(0, 20, {0, 1});
  EXPECT_EQ(watched.execute(batch).sequences[0].tokens, (std::vector<int32_t>{7}));
  EXPECT_FALSE(watched.violation());

  const std::string rule = "step 2: request 0 goes on at 0 where its slot stands at 20";
  batch.sequences[0].new_pages.clear();
  batch.sequences[0].draws = false;
  batch.sequences[0].logit_rows.clear();
  EXPECT_EQ(watched.execute(batch).sequences[0].error, rule);
  batch = prefill(0, 20, {});
  EXPECT_EQ(watched.execute(batch).sequences[0].error, rule);
  EXPECT_EQ(sevens.num_batches, 1);
}

TEST(WatchedExecutor, HoldsUsageAgainstWhatWasComputed) {
  Sevens sevens;
  WatchedExecutor watched(kConfig, sevens, no_drafts);
  watched.add({.id = 0, .prompt = prompt_of(20), .max_tokens = 10});
  watched.add({.id = 1, .prompt = prompt_of(20), .max_tokens = 10});
  watched.execute(prefill(0, 20, {0, 1}));
  watched.remove(1, {.usage = {.num_prompt_tokens = 20}});
  EXPECT_FALSE(watched.violation());
  watched.remove(
      0, {.usage = {.num_prompt_tokens = 20, .num_prefill_tokens = 20, .num_draft_tokens = 1}});
  ASSERT_TRUE(watched.violation());
  EXPECT_EQ(watched.violation()->message,
            "step 1: request 0 had 0 of 0 drafts accepted, by its usage 0 of 1");
}

}  // namespace
}  // namespace ingot::shadow
