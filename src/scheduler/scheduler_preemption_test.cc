// Preemption, priorities and drafts of the scheduler.
#include <algorithm>
#include <array>

#include "scheduler/scheduler_fixture.h"

namespace ingot::scheduler {
namespace {

// Room for two requests of 16 + 16 positions and a little more.
SchedulerConfig tight_config() {
  return {.num_pages = 6, .num_slots = 4, .max_context = 96, .max_step_tokens = 64};
}

void expect_whole(const SchedulerDriver& driver, RequestId id, int32_t count) {
  const std::vector<int32_t>& output = driver.outputs.at(id);
  ASSERT_EQ(output.size(), static_cast<size_t>(count));
  for (int32_t i = 0; i < count; ++i) EXPECT_EQ(output[static_cast<size_t>(i)], i);
}

TEST(Preemption, TakesTheNewestOfTheLowestPriorityAndItGoesOnWhereItWas) {
  SchedulerDriver driver(tight_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 15), .max_tokens = 60});
  driver.add({.id = 2, .prompt = tokens_from(2, 15), .max_tokens = 60, .priority = 1});
  driver.add({.id = 3, .prompt = tokens_from(3, 15), .max_tokens = 10});
  driver.run();
  expect_whole(driver, 1, 60);
  expect_whole(driver, 2, 60);
  expect_whole(driver, 3, 10);
  EXPECT_EQ(driver.reports.at(2).usage.num_preemptions, 0);
  EXPECT_GT(driver.reports.at(1).usage.num_preemptions, 0);
  EXPECT_LT(driver.reports.at(2).timings.finished, driver.reports.at(1).timings.finished);
}

TEST(Preemption, OneRequestSuffersItNoMoreOftenThanAllowed) {
  for (const int32_t allowed : {0, 1, 3}) {
    SchedulerConfig config = tight_config();
    config.max_preemptions = allowed;
    SchedulerDriver driver(config);
    for (RequestId id = 0; id < 12; ++id) {
      driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 15), .max_tokens = 60});
    }
    driver.run();
    int32_t most = 0;
    for (RequestId id = 0; id < 12; ++id) {
      expect_whole(driver, id, 60);
      most = std::max(most, driver.reports.at(id).usage.num_preemptions);
    }
    EXPECT_LE(most, allowed);
    EXPECT_EQ(driver.scheduler.stats().num_preemptions > 0, allowed > 0);
  }
}

TEST(Preemption, ARequestOfHigherPriorityTakesTheRoomOfALowerOne) {
  SchedulerDriver driver(tight_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 40), .max_tokens = 5});
  driver.add({.id = 2, .prompt = tokens_from(2, 20), .max_tokens = 10});
  driver.step();
  driver.step();
  driver.add({.id = 3, .prompt = tokens_from(3, 30), .max_tokens = 5, .priority = 2});
  const Batch& batch = driver.schedule();
  EXPECT_TRUE(SchedulerDriver::has(batch, 3));
  EXPECT_FALSE(SchedulerDriver::has(batch, 2));
  driver.commit(batch);
  driver.run();
  expect_whole(driver, 1, 5);
  expect_whole(driver, 2, 10);
  expect_whole(driver, 3, 5);
  EXPECT_EQ(driver.reports.at(1).usage.num_preemptions, 0);
  EXPECT_EQ(driver.reports.at(2).usage.num_preemptions, 1);
}

TEST(Preemption, TakesNoRoomThatCannotBeEnough) {
  SchedulerConfig config = tight_config();
  config.num_pages = 12;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(1, 64), .max_tokens = 1});
  driver.run();  // four pages that can be evicted
  driver.add({.id = 2, .prompt = tokens_from(2, 80), .max_tokens = 10, .priority = 1});
  driver.add({.id = 3, .prompt = tokens_from(3, 5), .max_tokens = 10});
  driver.step();
  driver.step();
  std::vector<int32_t> prompt = tokens_from(1, 64);
  prompt.resize(90, 7);
  driver.add({.id = 4, .prompt = prompt, .max_tokens = 2, .priority = 1});
  driver.step();
  EXPECT_EQ(driver.scheduler.stats().num_preemptions, 0);
  driver.run();
  EXPECT_EQ(driver.reports.at(4).usage.num_cached_tokens % kPageTokens, 0);
}

TEST(Preemption, EqualPriorityTakesNoRoom) {
  SchedulerConfig config = tight_config();
  config.num_slots = 1;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(1, 16), .max_tokens = 10});
  driver.step();
  driver.add({.id = 2, .prompt = tokens_from(2, 16), .max_tokens = 10});
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_preemptions, 0);
  EXPECT_LT(driver.reports.at(1).timings.finished, driver.reports.at(2).timings.first_token);
}

TEST(Preemption, RecomputedTokensAreCountedApart) {
  SchedulerConfig config = tight_config();
  config.prefix_cache = false;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(1, 15), .max_tokens = 60});
  driver.add({.id = 2, .prompt = tokens_from(2, 15), .max_tokens = 60});
  driver.run();
  const Usage& usage = driver.reports.at(2).usage;
  EXPECT_GT(usage.num_preemptions, 0);
  EXPECT_GT(usage.num_recomputed_tokens, 15);
  EXPECT_EQ(usage.num_prefill_tokens, 15);
  const SchedulerStats stats = driver.scheduler.stats();
  EXPECT_EQ(stats.num_decode_tokens, 2 * 59);
  EXPECT_EQ(stats.num_recomputed_tokens, usage.num_recomputed_tokens);
}

TEST(Preemption, PromptLogitsAreNotAskedForTwice) {
  SchedulerConfig config = tight_config();
  config.max_logit_rows = 6;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(1, 60), .max_tokens = 2, .wants_prompt_logits = true});
  std::vector<int32_t> wanted;
  for (int i = 0; !driver.reports.contains(1); ++i) {
    if (i == 5) {
      driver.add({.id = 2, .prompt = tokens_from(2, 80), .max_tokens = 1, .priority = 1});
    }
    const Batch& batch = driver.schedule();
    for (const auto& entry : batch.sequences) {
      for (const int32_t row : entry.logit_rows) {
        const int32_t position = entry.first_position + row;
        if (entry.request == 1 && position < 60) wanted.push_back(position);
      }
    }
    driver.commit(batch);
  }
  EXPECT_EQ(driver.reports.at(1).usage.num_preemptions, 1);
  ASSERT_EQ(wanted.size(), 60u);
  for (size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(wanted[i], static_cast<int32_t>(i));
}

SchedulerConfig speculative_config(int32_t depth) {
  SchedulerConfig config = roomy_config();
  config.speculation = SpeculationMode::kFixed;
  config.max_draft_tokens = depth;
  return config;
}

TEST(Speculation, AcceptedDraftsMoveTheSequenceOnAndRejectedOnesAreWrittenAgain) {
  SchedulerDriver driver(speculative_config(3));
  driver.accepted = 2;
  driver.add({.id = 1, .prompt = tokens_from(1, 14), .max_tokens = 10});
  driver.step();  // 14 rows, token 0
  const Batch batch = driver.schedule();
  EXPECT_EQ(batch.sequences[0].first_position, 14);
  EXPECT_EQ(batch.sequences[0].num_draft_tokens, 3);
  EXPECT_EQ(batch.sequences[0].new_pages.size(), 1u) << "for rows 14 to 17";
  driver.commit(batch);  // tokens 1, 2 and 3
  const Batch next = driver.schedule();
  EXPECT_EQ(next.sequences[0].first_position, 17) << "row 17 was a rejected draft's";
  EXPECT_EQ(next.sequences[0].tokens, std::vector<int32_t>{3});
  EXPECT_TRUE(next.sequences[0].new_pages.empty());
  driver.commit(next);
  driver.run();
  expect_whole(driver, 1, 10);
  const Usage& usage = driver.reports.at(1).usage;
  EXPECT_EQ(usage.num_accepted_tokens, 6);
  EXPECT_EQ(usage.num_draft_tokens, 3 + 3 + 2);
  EXPECT_EQ(driver.scheduler.stats().num_rejected_tokens, 2);
}

TEST(Speculation, CountsDraftsByTheirPositionInTheChain) {
  SchedulerDriver driver(speculative_config(3));
  driver.add({.id = 1, .prompt = tokens_from(1, 14), .max_tokens = 20});
  driver.add({.id = 2, .prompt = tokens_from(2, 14), .max_tokens = 20, .max_draft_tokens = 1});
  driver.step();
  for (const int32_t accepted : {0, 2, 3, 1}) {
    driver.accepted = accepted;
    driver.step();
  }
  const SchedulerStats stats = driver.scheduler.stats();
  EXPECT_EQ(stats.drafted_by_position, (std::array<int64_t, kDraftTokensMax>{8, 4, 4}));
  EXPECT_EQ(stats.accepted_by_position, (std::array<int64_t, kDraftTokensMax>{6, 2, 1}));
  EXPECT_EQ(stats.num_accepted_tokens, 9);
  EXPECT_EQ(stats.num_rejected_tokens, 7);
}

TEST(Speculation, DraftsNoFurtherThanTheRequestGoes) {
  SchedulerDriver driver(speculative_config(5));
  driver.accepted = 5;
  driver.add({.id = 1, .prompt = tokens_from(1, 10), .max_tokens = 4});
  driver.add({.id = 2, .prompt = tokens_from(2, 10), .max_tokens = 9, .max_draft_tokens = 1});
  driver.step();
  const Batch batch = driver.schedule();
  EXPECT_EQ(SchedulerDriver::entry(batch, 1).num_draft_tokens, 2);
  EXPECT_EQ(SchedulerDriver::entry(batch, 2).num_draft_tokens, 1);
  driver.commit(batch);
  driver.run();
  expect_whole(driver, 1, 4);
  expect_whole(driver, 2, 9);
}

TEST(Speculation, AStopTokenAmongAcceptedDraftsEndsTheRequestThere) {
  SchedulerDriver driver(speculative_config(4));
  driver.accepted = 4;
  driver.add({.id = 1, .prompt = tokens_from(1, 10), .max_tokens = 30, .stop_token_ids = {3}});
  driver.run();
  expect_whole(driver, 1, 3);
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kStop);
}

TEST(Speculation, DraftsKeepToTheBudget) {
  SchedulerConfig config = speculative_config(7);
  config.max_step_tokens = 20;
  SchedulerDriver driver(config);
  for (RequestId id = 0; id < 8; ++id) {
    driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 8), .max_tokens = 40});
  }
  while (true) {
    const Batch& batch = driver.schedule();
    if (batch.sequences.empty()) break;
    size_t rows = 0;
    for (const auto& e : batch.sequences)
      rows += e.tokens.size() + static_cast<size_t>(e.num_draft_tokens);
    EXPECT_LE(rows, 20u);
    driver.commit(batch);
  }
}

TEST(Speculation, DraftsPreemptNobody) {
  SchedulerConfig config = speculative_config(8);
  config.num_pages = 8;
  SchedulerDriver driver(config);
  driver.accepted = 1;
  for (RequestId id = 0; id < 2; ++id) {
    driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 30), .max_tokens = 30});
  }
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_preemptions, 0) << "4 pages each are enough";
  expect_whole(driver, 0, 30);
  expect_whole(driver, 1, 30);
}

}  // namespace
}  // namespace ingot::scheduler
