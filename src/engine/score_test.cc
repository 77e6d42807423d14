#include "engine/score.h"

#include <numeric>

#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "engine/test_model.h"

namespace ingot::engine {
namespace {

std::vector<int32_t> some_ids(int32_t count) {
  std::vector<int32_t> ids;
  for (int32_t i = 0; i < count; ++i) ids.push_back((i * 29 + 3) % 64);
  return ids;
}

std::vector<SequenceScore> score_with(TestModel& model,
                                      const std::vector<std::vector<int32_t>>& sequences,
                                      const LogitSink& sink = {}) {
  const ScoreRequest request{.sequences = sequences, .sink = sink};
  const auto runner = model.runner(score_capacity(request, model.loaded->config()));
  return score(*runner, request, model.clock).value();
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
