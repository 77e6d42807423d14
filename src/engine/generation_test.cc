#include "engine/generation.h"

#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include "engine/score.h"
#include "engine/test_model.h"

namespace ingot::engine {
namespace {

std::vector<int32_t> some_ids(int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((i * 29 + 3) % 64);
  return ids;
}

Generation generate_with(TestModel& model, const GenerationRequest& request) {
  const auto runner = model.runner(generation_capacity(request, model.loaded->config()));
  return Generator(*runner, model.clock).generate(request).value();
}

std::vector<SequenceScore> score_with(TestModel& model,
                                      const std::vector<std::vector<int32_t>>& sequences,
                                      const LogitSink& sink = {}) {
  const ScoreRequest request{.sequences = sequences, .sink = sink};
  const auto runner = model.runner(score_capacity(request, model.loaded->config()));
  return score(*runner, request, model.clock).value();
}

TEST(Generation, GreedyContinuesAsScoreSays) {
  TestModel model(2);
  const GenerationRequest request{.prompt = some_ids(11), .max_tokens = 6, .sampling = {}};
  const Generation generation = generate_with(model, request);
  ASSERT_EQ(generation.token_ids.size(), 6u);
  EXPECT_EQ(generation.finish_reason, FinishReason::kLength);
  std::vector<int32_t> known = request.prompt;
  for (const int32_t token : generation.token_ids) {
    EXPECT_EQ(score_with(model, {known}).front().next_tokens.front().id, token);
    known.push_back(token);
  }
}

TEST(Generation, SeedsDecideAtTemperature) {
  TestModel model(1);
  GenerationRequest request{
      .prompt = some_ids(5), .max_tokens = 20, .sampling = {.temperature = 1, .seed = 1}};
  const auto first = generate_with(model, request).token_ids;
  EXPECT_EQ(generate_with(model, request).token_ids, first);
  request.sampling.seed = 2;
  EXPECT_NE(generate_with(model, request).token_ids, first);
}

TEST(Generation, StopsAtTheModelsLastPosition) {
  TestModel model(1);
  const GenerationRequest request{.prompt = some_ids(45), .max_tokens = 100, .sampling = {}};
  // Positions 45, 46 and 47 are computed, and the token after position 47 is still drawn.
  EXPECT_EQ(generate_with(model, request).token_ids.size(), 4u);
  const GenerationRequest full{.prompt = some_ids(48), .max_tokens = 100, .sampling = {}};
  EXPECT_EQ(generate_with(model, full).token_ids.size(), 1u);
}

TEST(Generation, NoTokensAskedNoneGiven) {
  TestModel model(1);
  EXPECT_TRUE(generate_with(model, {.prompt = some_ids(3), .max_tokens = 0, .sampling = {}})
                  .token_ids.empty());
}

// A conversation: each prompt begins with some of what came before.
TEST(Generation, WhatIsInTheCacheIsNotComputedAgain) {
  TestModel model(2);
  const auto runner = model.runner(generation_capacity(48, model.loaded->config()));
  Generator generator(*runner, model.clock);
  GenerationRequest request{.prompt = some_ids(9), .max_tokens = 5, .sampling = {}};
  const Generation first = generator.generate(request).value();
  EXPECT_EQ(first.num_cached_tokens, 0u);

  const auto expect_as_alone = [&](size_t cached) {
    const Generation continued = generator.generate(request).value();
    EXPECT_EQ(continued.num_cached_tokens, cached);
    EXPECT_EQ(continued.token_ids, generate_with(model, request).token_ids);
  };
  // The last token of an output is drawn and not computed.
  request.prompt.insert(request.prompt.end(), first.token_ids.begin(), first.token_ids.end());
  request.prompt.push_back(7);
  expect_as_alone(9 + 4);
  request.prompt.resize(11);
  request.prompt.push_back(1);
  expect_as_alone(11);
  expect_as_alone(11);  // all but the last token, for its logits
  request.prompt = {42, 3};
  expect_as_alone(0);
}

TEST(Generation, TokensArriveOneByOneUntilNobodyWantsThem) {
  TestModel model(1);
  const GenerationRequest request{.prompt = some_ids(9), .max_tokens = 20, .sampling = {}};
  const auto runner = model.runner(generation_capacity(request, model.loaded->config()));
  std::vector<int32_t> seen;
  const GenerationHooks hooks{.on_token =
                                  [&](int32_t token) {
                                    seen.push_back(token);
                                    return base::Status{};
                                  },
                              .wants_more = [&] { return seen.size() < 3; }};
  Generator generator(*runner, model.clock);
  const Generation aborted = generator.generate(request, hooks).value();
  EXPECT_EQ(aborted.finish_reason, FinishReason::kCancelled);
  EXPECT_EQ(aborted.token_ids, seen);
  EXPECT_EQ(seen.size(), 3u);
  const Generation whole = generate_with(model, request);
  EXPECT_EQ(std::vector(whole.token_ids.begin(), whole.token_ids.begin() + 3), seen);
  EXPECT_EQ(generator.generate(request).value().token_ids, whole.token_ids);
}

TEST(Generation, DrawsOnlyIdsThatTheTokenizerHas) {
  TestModel model(1);
  const GenerationRequest request{.prompt = some_ids(5),
                                  .max_tokens = 30,
                                  .sampling = {.temperature = 50, .seed = 3},
                                  .drawable_ids = {0, 1, 0, 1, 1}};
  std::set<int32_t> drawn;
  for (const int32_t token : generate_with(model, request).token_ids) drawn.insert(token);
  EXPECT_EQ(drawn, (std::set<int32_t>{1, 3, 4}));
}

TEST(Score, AddsUpWhatTheLogitsSay) {
  TestModel model(2);
  const std::vector<std::vector<int32_t>> sequences = {some_ids(20), some_ids(1), some_ids(33)};
  std::vector<std::vector<float>> logits(sequences.size());
  const auto scores = score_with(model, sequences, [&](size_t s, std::span<const float> rows) {
    logits[s].insert(logits[s].end(), rows.begin(), rows.end());
    return base::Status{};
  });
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_FALSE(scores[1].nll().has_value());
  for (size_t s = 0; s < sequences.size(); ++s) {
    ASSERT_EQ(logits[s].size(), sequences[s].size() * 64);
    double sum = 0;
    for (size_t i = 0; i + 1 < sequences[s].size(); ++i) {
      const std::span<const float> row = std::span(logits[s]).subspan(i * 64, 64);
      sum += log_sum_exp(row) - row[static_cast<size_t>(sequences[s][i + 1])];
    }
    EXPECT_DOUBLE_EQ(scores[s].nll_sum, sum);
    const auto best = likeliest(std::span(logits[s]).last(64), kNextTokens);
    ASSERT_EQ(scores[s].next_tokens.size(), kNextTokens);
    for (size_t i = 0; i < kNextTokens; ++i) {
      EXPECT_EQ(scores[s].next_tokens[i].id, best[i].id);
      EXPECT_EQ(scores[s].next_tokens[i].logprob, best[i].logprob);
    }
  }
}

TEST(Score, LikeliestTokensAreInOrder) {
  const std::vector<float> logits = {1, 3, 3, -2, 2};
  const auto best = likeliest(logits, 3);
  ASSERT_EQ(best.size(), 3u);
  EXPECT_EQ(best[0].id, 1);
  EXPECT_EQ(best[1].id, 2);
  EXPECT_EQ(best[2].id, 4);
  EXPECT_DOUBLE_EQ(best[0].logprob, 3 - log_sum_exp(logits));
  EXPECT_EQ(likeliest(logits, 100).size(), 5u);
}

TEST(Score, AFailingSinkEndsIt) {
  TestModel model(1);
  const std::vector<std::vector<int32_t>> sequences = {some_ids(4)};
  const ScoreRequest request{.sequences = sequences,
                             .sink = [](size_t, std::span<const float>) -> base::Status {
                               return base::error("disk full");
                             }};
  const auto runner = model.runner(score_capacity(request, model.loaded->config()));
  const auto scores = score(*runner, request, model.clock);
  ASSERT_FALSE(scores.has_value());
  EXPECT_EQ(scores.error().message, "disk full");
}

TEST(Score, RefusesWhatTheModelCannotTake) {
  TestModel model(1);
  const auto message = [&](const std::vector<std::vector<int32_t>>& sequences) {
    const auto status = check_sequences(sequences, model.loaded->config());
    return status ? "fine" : status.error().message;
  };
  EXPECT_EQ(message({some_ids(48)}), "fine");
  EXPECT_EQ(message({some_ids(49)}),
            "sequence 0 has 49 tokens, more than the model's 48 positions");
  EXPECT_EQ(message({}), "no token ids; give at least one");
  EXPECT_EQ(message({{1}, {}}), "sequence 1 has no token ids; give at least one");
  EXPECT_EQ(message({{0, 63, 64}}),
            "sequence 0: token id 64 at index 2 is out of range; the model has ids 0 to 63");
  EXPECT_EQ(message({{-1}}),
            "sequence 0: token id -1 at index 0 is out of range; the model has ids 0 to 63");
}

// A slot that was released starts empty again, whatever its pages held.
TEST(ModelRunner, ReleasedSlotsAreReusedCleanly) {
  TestModel model(3);
  const std::vector<int32_t> first = some_ids(30);
  const std::vector<int32_t> second(20, 7);
  const auto last_logits = [](std::span<const float> logits) {
    return std::vector<float>(logits.end() - 64, logits.end());
  };
  const auto batch_of = [](const std::vector<int32_t>& ids, std::vector<int32_t> pages) {
    scheduler::Batch batch;
    batch.released_slots = {0};
    batch.sequences.push_back({.slot = 0,
                               .first_position = 0,
                               .tokens = ids,
                               .new_pages = std::move(pages),
                               .logit_rows = {static_cast<int32_t>(ids.size()) - 1}});
    return batch;
  };
  const RunnerCapacity capacity{
      .step_tokens = 30, .logit_rows = 1, .context = 48, .num_pages = 3, .num_slots = 1};
  const auto runner = model.runner(capacity);
  const auto fresh = last_logits(runner->forward(batch_of(second, {0, 1})));
  runner->forward(batch_of(first, {1, 2}));
  EXPECT_EQ(last_logits(runner->forward(batch_of(second, {2, 1}))), fresh);
}

// Rows that drafts wrote are written again before anything reads them.
TEST(ModelRunner, DraftingChangesNothingAfterIt) {
  TestModel model(2, model::MtpChoice::kLoad);
  const std::vector<int32_t> ids = some_ids(30);
  const RunnerCapacity capacity{
      .step_tokens = 30, .logit_rows = 30, .context = 48, .num_pages = 3, .num_slots = 1};
  const auto batch_of = [&](size_t first, size_t count) {
    scheduler::Batch batch;
    auto& sequence = batch.sequences.emplace_back();
    sequence.first_position = static_cast<int32_t>(first);
    const std::span<const int32_t> part = std::span(ids).subspan(first, count);
    sequence.tokens.assign(part.begin(), part.end());
    sequence.logit_rows = {static_cast<int32_t>(count) - 1};
    if (first == 0) sequence.new_pages = {0, 1, 2};
    return batch;
  };
  const auto run = [&](bool drafts) {
    const auto runner = model.runner(capacity);
    std::vector<float> last;
    std::vector<std::vector<int32_t>> guessed;
    for (const auto& [first, count] : {std::pair<size_t, size_t>{0, 12}, {12, 1}, {13, 17}}) {
      const auto logits = runner->forward(batch_of(first, count));
      last.assign(logits.begin(), logits.end());
      const DraftStart wrong{.slot = 0, .token = 63, .count = 5};
      if (drafts && first < 13) guessed.push_back(runner->draft({&wrong, 1}).front().value());
    }
    const DraftStart start{.slot = 0, .token = argmax(last), .count = 4};
    guessed = {runner->draft({&start, 1}).front().value()};
    return std::pair(last, guessed);
  };
  EXPECT_TRUE(run(true) == run(false));
}

}  // namespace
}  // namespace ingot::engine
