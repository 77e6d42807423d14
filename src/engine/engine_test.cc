#include "engine/engine.h"

#include <atomic>
#include <chrono>
#include <mutex>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "engine/model_text.h"
#include "engine/score.h"
#include "engine/test_model.h"
#include "engine/update_queue.h"

namespace ingot::engine {
namespace {

using namespace std::chrono_literals;
using scheduler::FinishReason;
using scheduler::RequestId;
using scheduler::SpeculationMode;

std::vector<int32_t> some_ids(int32_t count, int32_t first = 3) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((i * 29 + first) % 64);
  return ids;
}

// All news of one request, joined.
struct Answer {
  std::vector<int32_t> tokens;
  std::vector<TokenLogprobs> logprobs;
  std::vector<TokenLogprobs> prompt_logprobs;
  std::vector<int32_t> prompt_progress;
  EngineReport report;
  int num_reports = 0;
};

EngineOptions roomy() {
  return {.capacity = {
              .step_tokens = 24, .logit_rows = 24, .context = 48, .num_pages = 40, .num_slots = 4}};
}

class EngineTest : public testing::Test {
 protected:
  static TestModel& model() {
    static TestModel model(1, model::MtpChoice::kLoad);
    return model;
  }

  static std::unique_ptr<Engine> engine(EngineOptions options = roomy()) {
    return Engine::create(*model().loaded, model().team, std::move(options), model().clock).value();
  }

  static std::map<uint64_t, Answer> answer_all(Engine& engine,
                                               const std::vector<EngineRequest>& requests) {
    const UpdateQueue queue;
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_TRUE(engine.submit(requests[i], queue.sink(i))) << i;
    }
    return gather(queue, requests.size());
  }

  static std::map<uint64_t, Answer> gather(const UpdateQueue& queue, size_t count) {
    std::map<uint64_t, Answer> answers;
    for (size_t num_reports = 0; num_reports < count;) {
      auto entry = queue.wait_for(60s);
      if (!entry) {
        ADD_FAILURE() << "no news for a minute";
        return answers;
      }
      Answer& answer = answers[entry->tag];
      EngineUpdate& update = entry->update;
      EXPECT_EQ(answer.num_reports, 0) << "news after the report";
      answer.tokens.insert(answer.tokens.end(), update.tokens.begin(), update.tokens.end());
      std::ranges::copy(update.logprobs, std::back_inserter(answer.logprobs));
      std::ranges::copy(update.prompt_logprobs, std::back_inserter(answer.prompt_logprobs));
      answer.prompt_progress.push_back(update.num_prompt_tokens_done);
      if (!update.report) continue;
      answer.report = *update.report;
      ++answer.num_reports;
      ++num_reports;
      EXPECT_EQ(answer.report.usage.num_output_tokens, std::ssize(answer.tokens));
    }
    return answers;
  }

  static Answer answer(Engine& engine, const EngineRequest& request) {
    return answer_all(engine, {request}).at(0);
  }
  static Answer answer_alone(const EngineRequest& request) { return answer(*engine(), request); }

  // Nothing runs, nothing waits, and every page is free or could be.
  static void expect_all_returned(const Engine& engine, const EngineOptions& options = roomy()) {
    const scheduler::SchedulerStats stats = engine.stats().scheduler;
    EXPECT_EQ(stats.num_running, 0);
    EXPECT_EQ(stats.num_waiting, 0);
    EXPECT_EQ(stats.num_requests_added, stats.num_requests_finished);
    EXPECT_EQ(stats.num_free_pages + stats.num_cached_pages, options.capacity.num_pages);
    EXPECT_EQ(stats.num_evictable_pages, stats.num_cached_pages);
  }
};

TEST_F(EngineTest, GreedyContinuesAsScoreSays) {
  const EngineRequest request{.prompt = some_ids(11), .max_tokens = 6};
  const Answer answered = answer_alone(request);
  ASSERT_EQ(answered.tokens.size(), 6u);
  EXPECT_EQ(answered.report.reason, FinishReason::kLength);
  EXPECT_EQ(answered.prompt_progress.back(), 11);
  std::vector<int32_t> known = request.prompt;
  for (const int32_t token : answered.tokens) {
    const std::vector<std::vector<int32_t>> sequences = {known};
    const ScoreRequest asked{.sequences = sequences};
    const auto runner = model().runner(score_capacity(asked, model().loaded->config()));
    EXPECT_EQ(score(*runner, asked, model().clock).value().front().next_tokens.front().id, token);
    known.push_back(token);
  }
}

TEST_F(EngineTest, SeedsDecideAtTemperature) {
  EngineRequest request{
      .prompt = some_ids(5), .max_tokens = 20, .sampling = {.temperature = 1, .seed = 1}};
  const auto first = answer_alone(request).tokens;
  EXPECT_EQ(answer_alone(request).tokens, first);
  request.sampling.seed = 2;
  EXPECT_NE(answer_alone(request).tokens, first);
}

TEST_F(EngineTest, WithoutALimitTheContextIsTheLimit) {
  const Answer answered = answer_alone({.prompt = some_ids(45)});
  EXPECT_EQ(answered.tokens.size(), 3u);
  EXPECT_EQ(answered.report.reason, FinishReason::kLength);
  const Answer nothing = answer_alone({.prompt = some_ids(48), .max_tokens = 0});
  EXPECT_TRUE(nothing.tokens.empty());
  EXPECT_EQ(nothing.report.usage.num_prefill_tokens, 48);
}

TEST_F(EngineTest, DrawsOnlyIdsThatStandForSomething) {
  EngineOptions options = roomy();
  options.drawable.emplace(64);
  for (int32_t id = 0; id < 64; ++id) {
    if (id != 1 && id != 3 && id != 4) options.drawable->forbid(id);
  }
  const auto few = engine(options);
  const Answer answered =
      answer(*few, {.prompt = some_ids(5), .max_tokens = 30, .sampling = {.temperature = 50}});
  EXPECT_EQ(std::set(answered.tokens.begin(), answered.tokens.end()), (std::set{1, 3, 4}));
}

TEST_F(EngineTest, ACachedPrefixIsFoundAgain) {
  const auto one = engine();
  EngineRequest request{.prompt = some_ids(20), .max_tokens = 16};
  const Answer first = answer(*one, request);
  request.prompt.insert(request.prompt.end(), first.tokens.begin(), first.tokens.end());
  request.max_tokens = 5;
  const Answer second = answer(*one, request);
  EXPECT_EQ(second.report.usage.num_cached_tokens, 32);
  EXPECT_EQ(second.tokens, answer_alone(request).tokens);
  request.cache_salt = "another's";
  EXPECT_EQ(answer(*one, request).report.usage.num_cached_tokens, 0);
  expect_all_returned(*one);
}

// Eight requests at once, of four slots, greedy and drawn, each as it would be alone.
TEST_F(EngineTest, CompanyDraftsAndThreadsOfSubmittersDoNotMatter) {
  std::vector<EngineRequest> requests;
  std::vector<Answer> alone;
  for (int32_t i = 0; i < 8; ++i) {
    requests.push_back(
        {.prompt = some_ids(6 + i, i / 2),
         .max_tokens = 12 + i,
         .sampling = {.temperature = i % 3 * 0.7, .seed = 100u + static_cast<uint64_t>(i)},
         .priority = i % 2});
    alone.push_back(answer_alone(requests.back()));
  }
  for (const SpeculationMode mode : {SpeculationMode::kOff, SpeculationMode::kFixed}) {
    EngineOptions options = roomy();
    options.speculation = mode;
    options.max_draft_tokens = mode == SpeculationMode::kOff ? 0 : 2;
    const auto busy = engine(options);
    const UpdateQueue queue;
    {
      std::vector<std::jthread> submitters;
      for (size_t i = 0; i < requests.size(); ++i) {
        submitters.emplace_back([&, i] { EXPECT_TRUE(busy->submit(requests[i], queue.sink(i))); });
      }
    }
    const auto answers = gather(queue, requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      EXPECT_EQ(answers.at(i).tokens, alone[i].tokens) << i;
      EXPECT_EQ(answers.at(i).report.reason, alone[i].report.reason);
    }
    EXPECT_TRUE(busy->wait_until_idle(10s));
    expect_all_returned(*busy);
  }
}

TEST_F(EngineTest, StopIdsEndAnOutputAndAreNotPartOfIt) {
  EngineRequest request{.prompt = some_ids(7), .max_tokens = 20};
  const std::vector<int32_t> all = answer_alone(request).tokens;
  request.stop_token_ids = {all[4]};
  const auto first = static_cast<size_t>(std::ranges::find(all, all[4]) - all.begin());
  const Answer stopped = answer_alone(request);
  EXPECT_EQ(stopped.tokens, std::vector(all.begin(), all.begin() + static_cast<ptrdiff_t>(first)));
  EXPECT_EQ(stopped.report.reason, FinishReason::kStop);
  EXPECT_EQ(stopped.report.stopped_by_id, all[4]);
  request.min_tokens = 10;
  const Answer later = answer_alone(request);
  EXPECT_GE(later.tokens.size(), 10u);
  EXPECT_EQ(std::ranges::count(std::span(later.tokens).first(10), all[4]), 0)
      << "what would end it is not drawn before";
}

TEST_F(EngineTest, LogprobsComeWithTheirTokens) {
  const EngineRequest request{.prompt = some_ids(30),
                              .max_tokens = 9,
                              .sampling = {.temperature = 1, .num_top_logprobs = 2},
                              .wants_prompt_logprobs = true};
  EngineOptions options = roomy();
  options.speculation = SpeculationMode::kFixed;
  options.max_draft_tokens = 2;
  for (const auto& chosen : {roomy(), options}) {
    const auto one = engine(chosen);
    const Answer answered = answer(*one, request);
    ASSERT_EQ(answered.logprobs.size(), answered.tokens.size());
    for (size_t i = 0; i < answered.tokens.size(); ++i) {
      EXPECT_EQ(answered.logprobs[i].token.id, answered.tokens[i]);
      EXPECT_EQ(answered.logprobs[i].top.size(), 2u);
    }
    ASSERT_EQ(answered.prompt_logprobs.size(), request.prompt.size() - 1);
    for (size_t i = 1; i < request.prompt.size(); ++i) {
      EXPECT_EQ(answered.prompt_logprobs[i - 1].token.id, request.prompt[i]);
    }
  }
}

TEST_F(EngineTest, AGrammarDecidesWhatMayBeDrawn) {
  TokenMask odd(64);
  for (int32_t id = 0; id < 64; id += 2) odd.forbid(id);
  std::vector<int32_t> told;
  const Answer answered =
      answer_alone({.prompt = some_ids(5),
                    .max_tokens = 10,
                    .sampling = {.temperature = 1},
                    .grammar = TokenGrammar{.allowed = [&] { return odd.words(); },
                                            .tell = [&](int32_t id) { told.push_back(id); }}});
  EXPECT_TRUE(std::ranges::all_of(answered.tokens, [](int32_t id) { return id % 2 == 1; }));
  EXPECT_EQ(told, answered.tokens);
}

TEST_F(EngineTest, WhatCannotBeServedIsRefusedAtTheDoor) {
  const auto one = engine();
  const auto expect_refused = [&](EngineRequest request, std::string_view phrase) {
    bool told = false;
    const auto id = one->submit(std::move(request), [&](EngineUpdate&&) { told = true; });
    ASSERT_FALSE(id.has_value()) << phrase;
    EXPECT_NE(id.error().message.find(phrase), std::string::npos) << id.error().message;
    EXPECT_FALSE(told);
  };
  const std::vector<int32_t> prompt = some_ids(5);
  expect_refused({}, "the prompt is empty");
  expect_refused({.prompt = {3, 64}}, "the prompt names token 64");
  expect_refused({.prompt = {-1}}, "the prompt names token -1");
  expect_refused({.prompt = some_ids(48)},
                 "the prompt has 48 tokens; the context served here has 48");
  expect_refused({.prompt = prompt, .max_tokens = 44}, "5 tokens and max_tokens is 44");
  expect_refused({.prompt = prompt, .max_tokens = -1}, "max_tokens is -1");
  expect_refused({.prompt = prompt, .max_tokens = 4, .min_tokens = 5}, "min_tokens is 5");
  expect_refused({.prompt = prompt, .sampling = {.temperature = -1}}, "temperature is -1");
  expect_refused({.prompt = prompt, .stop_token_ids = {99}}, "stop_token_ids names token 99");
  expect_refused({.prompt = prompt, .stop_strings = {"a", ""}}, "a stop string is empty");
  expect_refused({.prompt = prompt, .stop_strings = {"a"}}, "need the model's tokenizer");
  EXPECT_EQ(one->stats().num_refused, 11);
  one->refuse_new();
  expect_refused({.prompt = prompt, .max_tokens = 4}, "shutting down");
}

TEST_F(EngineTest, ACancelledRequestEndsAndTheOthersGoOn) {
  const auto one = engine();
  const UpdateQueue queue;
  const EngineRequest longest{.prompt = some_ids(3), .max_tokens = 45};
  const RequestId id = one->submit(longest, queue.sink(0)).value();
  ASSERT_TRUE(one->submit({.prompt = some_ids(5), .max_tokens = 30}, queue.sink(1)));
  one->cancel(id);
  one->cancel(id);
  one->cancel(id + 100);  // nobody's
  const auto answers = gather(queue, 2);
  EXPECT_EQ(answers.at(0).report.reason, FinishReason::kCancelled);
  EXPECT_LT(answers.at(0).tokens.size(), 45u);
  EXPECT_EQ(answers.at(1).tokens, answer_alone({.prompt = some_ids(5), .max_tokens = 30}).tokens);
  expect_all_returned(*one);
}

TEST_F(EngineTest, ASinkMayCancel) {
  const UpdateQueue queue;
  const UpdateSink inner = queue.sink(0);
  const auto one = engine();  // ends before what its sinks refer to
  std::atomic<RequestId> id = 0;
  const UpdateSink sink = [&](EngineUpdate&& update) {
    if (!update.tokens.empty()) one->cancel(1);
    inner(std::move(update));
  };
  id = one->submit({.prompt = some_ids(3), .max_tokens = 45}, sink).value();
  EXPECT_EQ(id, 1u);
  const auto answers = gather(queue, 1);
  EXPECT_EQ(answers.at(0).report.reason, FinishReason::kCancelled);
  EXPECT_LT(answers.at(0).tokens.size(), 45u);
}

TEST_F(EngineTest, ADeadlineEnds) {
  const auto one = engine();
  const Answer late =
      answer(*one, {.prompt = some_ids(3), .max_tokens = 45, .deadline = model().clock.now() - 1s});
  EXPECT_EQ(late.report.reason, FinishReason::kDeadline);
  EXPECT_TRUE(late.tokens.empty());
}

// Fails what it is told to fail, in the middle of a run.
class FailingExecutor final : public scheduler::Executor {
 public:
  FailingExecutor(scheduler::Executor& model, std::function<bool(int64_t, RequestId)> fails)
      : model_(model), fails_(std::move(fails)) {}

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override {
    result_ = model_.execute(batch);
    ++num_steps_;
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      if (fails_(num_steps_, batch.sequences[i].request)) {
        result_.sequences[i] = {.error = "the test says so"};
      }
    }
    return result_;
  }

 private:
  scheduler::Executor& model_;
  const std::function<bool(int64_t, RequestId)> fails_;
  scheduler::StepResult result_;
  int64_t num_steps_ = 0;
};

EngineOptions failing(std::function<bool(int64_t step, RequestId id)> fails) {
  EngineOptions options = roomy();
  options.wrap_executor = [fails = std::move(fails)](ModelExecutor& model) {
    return std::make_unique<FailingExecutor>(model, fails);
  };
  return options;
}

TEST_F(EngineTest, AFailingRequestEndsAlone) {
  const auto one = engine(failing([](int64_t step, RequestId id) { return id == 2 && step > 4; }));
  const std::vector<EngineRequest> requests(3, {.prompt = some_ids(4), .max_tokens = 20});
  const auto answers = answer_all(*one, requests);
  EXPECT_EQ(answers.at(1).report.reason, FinishReason::kError);
  EXPECT_EQ(answers.at(1).report.error, "the test says so");
  const auto whole = answer_alone(requests[0]).tokens;
  EXPECT_EQ(answers.at(0).tokens, whole);
  EXPECT_EQ(answers.at(2).tokens, whole);
  EXPECT_TRUE(std::ranges::equal(answers.at(1).tokens,
                                 std::span(whole).first(answers.at(1).tokens.size())));
  expect_all_returned(*one);
}

TEST_F(EngineTest, AFailingStepEndsItsRequestsAndTheEngineGoesOn) {
  const auto one = engine(failing([](int64_t step, RequestId) { return step == 3; }));
  const EngineRequest request{.prompt = some_ids(4), .max_tokens = 20};
  for (const auto& [tag, failed] : answer_all(*one, {request, request})) {
    EXPECT_EQ(failed.report.reason, FinishReason::kError) << tag;
  }
  EXPECT_EQ(answer(*one, request).tokens, answer_alone(request).tokens);
  expect_all_returned(*one);
}

TEST_F(EngineTest, DrainsAndThenIsIdle) {
  const auto one = engine();
  const UpdateQueue queue;
  for (uint64_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(one->submit({.prompt = some_ids(4), .max_tokens = 30}, queue.sink(i)));
  }
  EXPECT_FALSE(one->wait_until_idle(0s));
  one->refuse_new();
  EXPECT_TRUE(one->wait_until_idle(60s));
  EXPECT_EQ(gather(queue, 6).size(), 6u);
  expect_all_returned(*one);
}

TEST_F(EngineTest, DoesNothingWhileThereIsNothingToDo) {
  const auto one = engine();
  answer(*one, {.prompt = some_ids(4), .max_tokens = 3});
  ASSERT_TRUE(one->wait_until_idle(10s));
  const int64_t num_turns = one->num_turns();
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(one->num_turns(), num_turns);
}

TEST_F(EngineTest, WhoeverIsLeftAtTheEndIsToldSo) {
  const UpdateQueue queue;
  {
    const auto one = engine();
    for (uint64_t i = 0; i < 8; ++i) {
      ASSERT_TRUE(one->submit({.prompt = some_ids(3), .max_tokens = 45}, queue.sink(i)));
    }
  }
  for (const auto& [tag, answered] : gather(queue, 8)) {
    EXPECT_TRUE(answered.report.reason == FinishReason::kCancelled ||
                answered.report.reason == FinishReason::kLength)
        << tag;
  }
}

// Reads ids as the bundled model's tokenizer does; of its vocabulary the first 64 ids.
class StopStringTest : public EngineTest {
 protected:
  static const text::Tokenizer& tokenizer() {
    static const text::Tokenizer tokenizer =
        load_tokenizer(INGOT_SOURCE_DIR "/models/ingot-3m").value();
    return tokenizer;
  }
  static EngineOptions reading(int32_t depth) {
    EngineOptions options = roomy();
    options.tokenizer = &tokenizer();
    options.speculation = depth == 0 ? SpeculationMode::kOff : SpeculationMode::kFixed;
    options.max_draft_tokens = depth;
    return options;
  }
  static std::string text(std::span<const int32_t> ids) {
    return tokenizer().decode(ids, text::SpecialTokens::kKeep).value();
  }
};

TEST_F(StopStringTest, EndsWithTheTokenThatCompletesIt) {
  EngineRequest request{
      .prompt = some_ids(7), .max_tokens = 30, .sampling = {.temperature = 1, .seed = 9}};
  const std::vector<int32_t> all = answer_alone(request).tokens;
  const std::string stop = text(std::span(all).subspan(8, 3));
  // The shortest beginning of the output whose text has it.
  size_t length = 0;
  while (text(std::span(all).first(length)).find(stop) == std::string::npos) ++length;
  request.stop_strings = {"never said", stop};
  for (const int32_t depth : {0, 2}) {
    const auto one = engine(reading(depth));
    const Answer stopped = answer(*one, request);
    EXPECT_TRUE(std::ranges::equal(stopped.tokens, std::span(all).first(length)));
    EXPECT_EQ(stopped.report.reason, FinishReason::kStop);
    EXPECT_EQ(stopped.report.stopped_by_string, 1u);
    expect_all_returned(*one);
  }
}

TEST_F(StopStringTest, BeforeMinTokensItIsText) {
  EngineRequest request{
      .prompt = some_ids(7), .max_tokens = 30, .sampling = {.temperature = 1, .seed = 9}};
  const std::vector<int32_t> all = answer_alone(request).tokens;
  request.stop_strings = {text(std::span(all).subspan(2, 2))};
  request.min_tokens = 6;
  const Answer answered = answer(*engine(reading(0)), request);
  EXPECT_GE(answered.tokens.size(), 6u);
}

// The last token that max_tokens allows completes it: the string is the reason.
TEST_F(StopStringTest, MeetsTheEndOfTheOutput) {
  EngineRequest request{
      .prompt = some_ids(7), .max_tokens = 12, .sampling = {.temperature = 1, .seed = 9}};
  const std::vector<int32_t> all = answer_alone(request).tokens;
  request.stop_strings = {text(std::span(all).last(4))};
  const Answer answered = answer(*engine(reading(0)), request);
  EXPECT_EQ(answered.report.reason, FinishReason::kStop);
  EXPECT_EQ(answered.report.stopped_by_string, 0u);
  EXPECT_LE(answered.tokens.size(), 12u);
}

}  // namespace
}  // namespace ingot::engine
