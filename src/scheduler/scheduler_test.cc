#include "scheduler/scheduler.h"

#include <algorithm>

#include "scheduler/scheduler_fixture.h"

namespace ingot::scheduler {
namespace {

std::vector<int32_t> counting(int32_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

TEST(Scheduler, RefusesNumbersThatContradictEachOther) {
  SchedulerConfig config = roomy_config();
  config.max_step_tokens = config.num_slots + 1;
  const auto refused = Scheduler::create(config);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the scheduler's max_step_tokens is 9; it has to be at least 10");
  config = roomy_config();
  config.max_logit_rows = 8;
  EXPECT_FALSE(Scheduler::create(config));
  config = roomy_config();
  config.num_pages = 0;
  EXPECT_FALSE(Scheduler::create(config));
}

TEST(Scheduler, RefusesWhatCanNeverFit) {
  SchedulerConfig config = roomy_config();
  config.num_pages = 10;
  SchedulerDriver driver(config);
  EXPECT_EQ(driver.scheduler.max_request_tokens(), 160);
  const auto refused =
      driver.scheduler.add({.id = 1, .prompt = tokens_from(0, 100), .max_tokens = 61}, at(0));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "the prompt has 100 tokens and max_tokens is 61, 161 together; a request can have 160 "
            "here");
  EXPECT_FALSE(driver.scheduler.add({.id = 2, .prompt = {}, .max_tokens = 1}, at(0)));
  EXPECT_FALSE(driver.scheduler.add({.id = 3, .prompt = {1}, .max_tokens = -1}, at(0)));
  EXPECT_TRUE(driver.scheduler.idle());
  driver.add({.id = 4, .prompt = tokens_from(0, 100), .max_tokens = 60});
  driver.run();
  EXPECT_EQ(driver.reports.at(4).reason, FinishReason::kLength);
}

TEST(Scheduler, RefusesNumbersOutOfRange) {
  SchedulerDriver driver(roomy_config());
  EXPECT_FALSE(driver.scheduler.add({.id = 1, .prompt = {1}, .max_draft_tokens = -3}, at(0)));
  EXPECT_FALSE(driver.scheduler.add({.id = 2, .prompt = {1}, .min_tokens = -1}, at(0)));
  SchedulerConfig config = roomy_config();
  config.max_draft_tokens = kDraftTokensMax;
  EXPECT_TRUE(Scheduler::create(config));
  config.max_step_tokens = kDraftTokensMax;
  EXPECT_FALSE(Scheduler::create(config)) << "more than a step has rows";
  config = roomy_config();
  config.max_draft_tokens = kDraftTokensMax + 1;
  EXPECT_FALSE(Scheduler::create(config)) << "more than are counted";
}

TEST(Scheduler, NobodyWaitsForAPrefixThatGetsNoRows) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 4000), .max_tokens = 1});
  driver.add({.id = 2, .prompt = tokens_from(2, 5000), .max_tokens = 1});
  driver.step();
  driver.add({.id = 3, .prompt = tokens_from(2, 30), .max_tokens = 1});
  driver.step();
  EXPECT_TRUE(driver.reports.contains(3));
}

TEST(Scheduler, SeveralPromptsWithLogitsShareTheRows) {
  SchedulerDriver driver(roomy_config());
  for (RequestId id = 1; id <= 2; ++id) {
    driver.add({.id = id,
                .prompt = tokens_from(static_cast<int32_t>(id), id == 1 ? 2000 : 30),
                .max_tokens = 0,
                .wants_prompt_logits = true});
  }
  driver.step();
  EXPECT_TRUE(driver.reports.contains(2));
}

TEST(Scheduler, OfSeveralEndingsTheFirstDecides) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 50});
  for (int i = 0; i < 10; ++i) driver.step();
  const Batch& batch = driver.schedule();
  EXPECT_TRUE(driver.scheduler.stop(1, 3, at(20)));
  EXPECT_TRUE(driver.scheduler.stop(1, 5, at(20)));
  EXPECT_TRUE(driver.scheduler.cancel(1, at(20)));
  driver.commit(batch);
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kStop);
  EXPECT_EQ(driver.reports.at(1).usage.num_output_tokens, 3);
}

TEST(Scheduler, ComputesAPromptInChunksAndThenATokenAStep) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 7, .prompt = tokens_from(0, 100), .max_tokens = 3});
  Batch batch = driver.schedule();
  ASSERT_EQ(batch.sequences.size(), 1u);
  EXPECT_EQ(batch.sequences[0].first_position, 0);
  EXPECT_EQ(batch.sequences[0].tokens.size(), 64u);
  EXPECT_EQ(batch.sequences[0].new_pages.size(), 4u);
  EXPECT_FALSE(batch.sequences[0].draws);
  EXPECT_TRUE(batch.sequences[0].logit_rows.empty());
  driver.commit(batch);
  batch = driver.schedule();
  EXPECT_EQ(batch.sequences[0].first_position, 64);
  EXPECT_EQ(batch.sequences[0].tokens.front(), 64);
  EXPECT_EQ(batch.sequences[0].tokens.back(), 99);
  EXPECT_EQ(batch.sequences[0].new_pages.size(), 3u);
  EXPECT_TRUE(batch.sequences[0].draws);
  EXPECT_EQ(batch.sequences[0].logit_rows, std::vector<int32_t>{35});
  driver.commit(batch);
  batch = driver.schedule();
  EXPECT_EQ(batch.sequences[0].first_position, 100);
  EXPECT_EQ(batch.sequences[0].tokens, std::vector<int32_t>{0});
  EXPECT_TRUE(batch.sequences[0].new_pages.empty());
  driver.commit(batch);
  driver.run();
  EXPECT_EQ(driver.outputs.at(7), counting(3));
  const RequestReport& report = driver.reports.at(7);
  EXPECT_EQ(report.reason, FinishReason::kLength);
  EXPECT_EQ(report.usage.num_prompt_tokens, 100);
  EXPECT_EQ(report.usage.num_output_tokens, 3);
  EXPECT_EQ(report.usage.num_prefill_tokens, 100);
  EXPECT_EQ(report.timings.first_token, at(2));
  EXPECT_EQ(report.timings.finished, at(4));
  EXPECT_TRUE(driver.scheduler.idle());
}

TEST(Scheduler, TellsReleasedSlotsWithTheNextBatch) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 1});
  driver.run();
  EXPECT_TRUE(driver.schedule().released_slots.empty()) << "there is no batch to tell it with";
  driver.add({.id = 2, .prompt = tokens_from(2, 5), .max_tokens = 1});
  const Batch& batch = driver.schedule();
  EXPECT_EQ(batch.released_slots, std::vector<int32_t>{0});
  EXPECT_EQ(batch.sequences[0].slot, 0);
  driver.commit(batch);
}

TEST(Scheduler, WhoDecodesIsInEveryStepAndTheBudgetHolds) {
  SchedulerDriver driver(roomy_config());
  for (RequestId id = 0; id < 4; ++id) {
    driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 10), .max_tokens = 50});
  }
  driver.step();
  for (RequestId id = 4; id < 8; ++id) {
    driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 300), .max_tokens = 5});
  }
  for (int i = 0; i < 15; ++i) {
    const Batch& batch = driver.schedule();
    size_t rows = 0;
    for (const auto& entry : batch.sequences) rows += entry.tokens.size();
    EXPECT_EQ(rows, 64u) << "nothing is left unused";
    for (RequestId id = 0; id < 4; ++id) EXPECT_TRUE(SchedulerDriver::has(batch, id));
    driver.commit(batch);
  }
}

TEST(Scheduler, ALongPromptDoesNotHoldUpAShortOne) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 8000), .max_tokens = 1});
  driver.step();
  driver.add({.id = 2, .prompt = tokens_from(2, 30), .max_tokens = 1});
  driver.step();
  ASSERT_TRUE(driver.reports.contains(2));
  EXPECT_EQ(driver.reports.at(2).timings.first_token, at(2));
}

TEST(Scheduler, ShortPromptsDoNotStarveALongOne) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 0, .prompt = tokens_from(0, 3200), .max_tokens = 1});
  for (RequestId id = 1; !driver.reports.contains(0); ++id) {
    driver.add({.id = id, .prompt = tokens_from(static_cast<int32_t>(id), 32), .max_tokens = 1});
    ASSERT_TRUE(driver.step());
    ASSERT_LE(id, 2u * 3200 / (64 - 8)) << "the bound in scheduler.h";
  }
}

TEST(Scheduler, ARepeatedPromptComputesOneRow) {
  for (const int32_t length : {32, 40}) {
    SchedulerDriver driver(roomy_config());
    driver.add({.id = 1, .prompt = tokens_from(0, length), .max_tokens = 1});
    driver.run();
    driver.add({.id = 2, .prompt = tokens_from(0, length), .max_tokens = 1});
    const Batch& batch = driver.schedule();
    const bool whole = length % kPageTokens == 0;
    EXPECT_EQ(batch.sequences[0].first_position, whole ? 31 : 32);
    EXPECT_EQ(batch.sequences[0].num_read_only_tokens, whole ? 1 : 0);
    EXPECT_EQ(batch.sequences[0].tokens.size(), whole ? 1u : 8u);
    EXPECT_EQ(batch.sequences[0].new_pages.size(), whole ? 2u : 3u);
    driver.commit(batch);
    EXPECT_EQ(driver.reports.at(2).usage.num_cached_tokens, 32);
    EXPECT_EQ(driver.reports.at(2).usage.num_prefill_tokens, length - 32);
  }
}

TEST(Scheduler, WhereMtpRowsAreWrittenTheRowBeforeIsRepeated) {
  for (const SpeculationMode mode : {SpeculationMode::kOff, SpeculationMode::kFixed}) {
    SchedulerConfig config = roomy_config();
    config.speculation = mode;
    config.max_draft_tokens = mode == SpeculationMode::kOff ? 0 : 2;
    config.writes_mtp_rows = mode == SpeculationMode::kOff;  // else it goes without saying
    SchedulerDriver driver(config);
    driver.add({.id = 1, .prompt = tokens_from(0, 40), .max_tokens = 1});
    driver.run();
    driver.add({.id = 2, .prompt = tokens_from(0, 40), .max_tokens = 1});
    const Batch& batch = driver.schedule();
    EXPECT_EQ(batch.sequences[0].first_position, 31);
    EXPECT_EQ(batch.sequences[0].num_read_only_tokens, 1);
    EXPECT_EQ(batch.sequences[0].tokens.size(), 9u);
    driver.commit(batch);
    EXPECT_EQ(driver.scheduler.stats().num_read_only_tokens, 1);
  }
}

TEST(Scheduler, WhatWasGeneratedIsCachedToo) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(0, 20), .max_tokens = 30});
  driver.run();
  std::vector<int32_t> prompt = tokens_from(0, 20);
  prompt.insert(prompt.end(), driver.outputs.at(1).begin(), driver.outputs.at(1).end());
  driver.add({.id = 2, .prompt = prompt, .max_tokens = 1});
  driver.run();
  EXPECT_EQ(driver.reports.at(2).usage.num_cached_tokens, 48);
}

TEST(Scheduler, ACommonPrefixOfRequestsThatArriveTogetherIsComputedOnce) {
  SchedulerDriver driver(roomy_config());
  for (RequestId id = 0; id < 6; ++id) {
    std::vector<int32_t> prompt = tokens_from(0, 320);
    prompt.push_back(static_cast<int32_t>(-id));
    driver.add({.id = id, .prompt = prompt, .max_tokens = 2});
  }
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_prefill_tokens, 321 + 5);
  EXPECT_EQ(driver.scheduler.stats().num_hit_tokens, 5 * 320);
  EXPECT_EQ(driver.scheduler.stats().num_lookup_tokens, 6 * 321);
}

TEST(Scheduler, WhoWaitsForAPrefixLetsOthersPass) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 0, .prompt = tokens_from(0, 640), .max_tokens = 1});
  driver.add({.id = 1, .prompt = tokens_from(0, 641), .max_tokens = 1});
  driver.add({.id = 2, .prompt = tokens_from(2, 10), .max_tokens = 1});
  driver.step();
  EXPECT_TRUE(driver.reports.contains(2));
  // Its leader gone, it goes on by itself from what was computed.
  EXPECT_TRUE(driver.scheduler.cancel(0, at(driver.now)));
  driver.run();
  EXPECT_EQ(driver.reports.at(1).usage.num_cached_tokens, 48);
  EXPECT_EQ(driver.reports.at(1).usage.num_prefill_tokens, 641 - 48);
}

TEST(Scheduler, NobodyWaitsForAPrefixOfLowerPriority) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 640), .max_tokens = 1, .priority = -1});
  driver.step();
  driver.add({.id = 2, .prompt = tokens_from(1, 640), .max_tokens = 1});
  EXPECT_TRUE(SchedulerDriver::has(driver.schedule(), 2));
}

TEST(Scheduler, SaltsNeverMeet) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(0, 100), .max_tokens = 1, .cache_salt = "a"});
  driver.add({.id = 2, .prompt = tokens_from(0, 100), .max_tokens = 1, .cache_salt = "b"});
  driver.run();
  driver.add({.id = 3, .prompt = tokens_from(0, 100), .max_tokens = 1});
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_hit_tokens, 0);
  driver.add({.id = 4, .prompt = tokens_from(0, 100), .max_tokens = 1, .cache_salt = "b"});
  driver.run();
  EXPECT_EQ(driver.reports.at(4).usage.num_cached_tokens, 96);
}

TEST(Scheduler, WithoutAPrefixCacheNothingIsShared) {
  SchedulerConfig config = roomy_config();
  config.prefix_cache = false;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(0, 100), .max_tokens = 4});
  driver.add({.id = 2, .prompt = tokens_from(0, 100), .max_tokens = 4});
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_hit_tokens, 0);
  EXPECT_EQ(driver.scheduler.stats().num_free_pages, config.num_pages);
}

TEST(Scheduler, PromptLogitsReadNoCacheAndKeepToTheirRows) {
  SchedulerConfig config = roomy_config();
  config.max_logit_rows = 20;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(0, 50), .max_tokens = 0});
  driver.run();
  EXPECT_TRUE(driver.outputs[1].empty());
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kLength);
  driver.add({.id = 2, .prompt = tokens_from(0, 50), .max_tokens = 0, .wants_prompt_logits = true});
  int32_t next = 0;
  for (int i = 0; i < 3; ++i) {
    const Batch& batch = driver.schedule();
    const Batch::Sequence& entry = batch.sequences[0];
    EXPECT_LE(entry.logit_rows.size(), 20u);
    for (const int32_t row : entry.logit_rows) EXPECT_EQ(entry.first_position + row, next++);
    driver.commit(batch);
  }
  EXPECT_EQ(next, 50);
  EXPECT_EQ(driver.reports.at(2).usage.num_cached_tokens, 0);
}

TEST(Scheduler, StopTokensEndARequestAndAreNotPartOfIt) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 9, .stop_token_ids = {7, 4}});
  driver.add({.id = 2,
              .prompt = tokens_from(2, 5),
              .max_tokens = 9,
              .min_tokens = 5,
              .stop_token_ids = {4, 6}});
  driver.run();
  EXPECT_EQ(driver.outputs.at(1), counting(4));
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kStop);
  EXPECT_EQ(driver.outputs.at(2), counting(6));
}

TEST(Scheduler, AStopStringCutsWhatWasToldAlready) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 50});
  for (int i = 0; i < 10; ++i) driver.step();
  EXPECT_TRUE(driver.scheduler.stop(1, 7, at(20)));
  driver.take_events();
  EXPECT_EQ(driver.reports.at(1).usage.num_output_tokens, 7);
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kStop);
  EXPECT_FALSE(driver.scheduler.stop(1, 7, at(20))) << "it is over";
  EXPECT_FALSE(driver.step());
}

TEST(Scheduler, AnErrorEndsItsRequestAlone) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 5});
  driver.add({.id = 2, .prompt = tokens_from(2, 5), .max_tokens = 5});
  driver.step();
  driver.failing[1] = "logits are not finite";
  driver.run();
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kError);
  EXPECT_EQ(driver.reports.at(1).error, "logits are not finite");
  EXPECT_EQ(driver.outputs.at(2), counting(5));
}

TEST(Scheduler, WhatAFailedRequestComputedIsNotReused) {
  SchedulerDriver driver(roomy_config());
  driver.add({.id = 1, .prompt = tokens_from(1, 100), .max_tokens = 5});
  driver.step();
  EXPECT_EQ(driver.scheduler.stats().num_cached_pages, 4);
  driver.failing[1] = "logits are not finite";
  driver.run();
  EXPECT_EQ(driver.scheduler.stats().num_cached_pages, 0);
  driver.add({.id = 2, .prompt = tokens_from(1, 100), .max_tokens = 5});
  driver.run();
  EXPECT_EQ(driver.reports.at(2).usage.num_cached_tokens, 0);
}

TEST(Scheduler, CancelFreesEverythingAtEveryMoment) {
  for (int moment = 0; moment < 6; ++moment) {
    SchedulerConfig config = roomy_config();
    config.num_slots = 2;
    SchedulerDriver driver(config);
    driver.add({.id = 1, .prompt = tokens_from(1, 100), .max_tokens = 20});
    driver.add({.id = 2, .prompt = tokens_from(1, 101), .max_tokens = 20});  // deferred
    driver.add({.id = 3, .prompt = tokens_from(3, 100), .max_tokens = 20});
    driver.add({.id = 4, .prompt = tokens_from(4, 100), .max_tokens = 20});  // no slot
    for (int i = 0; i < moment; ++i) driver.step();
    const Batch& batch = driver.schedule();
    for (RequestId id = 1; id <= 4; ++id) EXPECT_TRUE(driver.scheduler.cancel(id, at(50)));
    driver.commit(batch);
    driver.take_events();
    for (RequestId id = 1; id <= 4; ++id) {
      EXPECT_EQ(driver.reports.at(id).reason, FinishReason::kCancelled);
    }
    const SchedulerStats stats = driver.scheduler.stats();
    EXPECT_TRUE(driver.scheduler.idle());
    EXPECT_EQ(stats.num_free_pages + stats.num_evictable_pages, config.num_pages);
    EXPECT_FALSE(driver.scheduler.cancel(1, at(50)));
  }
}

TEST(Scheduler, DeadlinesEndWhoWaitsAndWhoRuns) {
  SchedulerConfig config = roomy_config();
  config.num_slots = 1;
  SchedulerDriver driver(config);
  driver.add({.id = 1, .prompt = tokens_from(1, 5), .max_tokens = 50, .deadline = at(10)});
  driver.add({.id = 2, .prompt = tokens_from(2, 5), .max_tokens = 50, .deadline = at(5)});
  driver.add({.id = 3, .prompt = tokens_from(3, 5), .max_tokens = 2, .deadline = at(500)});
  driver.run();
  EXPECT_EQ(driver.reports.at(1).reason, FinishReason::kDeadline);
  EXPECT_EQ(driver.outputs.at(1), counting(10));
  EXPECT_EQ(driver.reports.at(2).reason, FinishReason::kDeadline);
  EXPECT_FALSE(driver.reports.at(2).timings.admitted);
  EXPECT_EQ(driver.reports.at(3).reason, FinishReason::kLength);
}

TEST(Scheduler, TheSameCallsGiveTheSameBatches) {
  const auto log = [] {
    SchedulerConfig config = roomy_config();
    config.num_pages = 40;
    SchedulerDriver driver(config);
    for (RequestId id = 0; id < 20; ++id) {
      driver.add({.id = id * 7919,
                  .prompt = tokens_from(static_cast<int32_t>(id % 5), 20 + 9 * (id % 7)),
                  .max_tokens = static_cast<int32_t>(10 + id),
                  .priority = static_cast<int32_t>(id % 3)});
    }
    std::vector<int64_t> numbers;
    while (true) {
      const Batch& batch = driver.schedule();
      if (batch.sequences.empty()) return numbers;
      for (const auto& entry : batch.sequences) {
        numbers.push_back(static_cast<int64_t>(entry.request));
        numbers.insert(numbers.end(), {entry.slot, entry.first_position});
        numbers.insert(numbers.end(), entry.new_pages.begin(), entry.new_pages.end());
      }
      driver.commit(batch);
    }
  };
  EXPECT_EQ(log(), log());
}

}  // namespace
}  // namespace ingot::scheduler
