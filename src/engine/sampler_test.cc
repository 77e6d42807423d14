#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "engine/token_mask.h"

namespace ingot::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
const TokenHistory kNoHistory;

// Copies, since the result of a draw lies in the scratch.
struct Drawn {
  int32_t id = -1;
  std::optional<double> logprob;
  std::vector<TokenLogprob> top_logprobs;
};

Drawn drawn(const std::vector<float>& logits, const SamplingParams& params, int64_t position = 0,
            const TokenHistory& history = kNoHistory, std::span<const uint32_t> allowed = {}) {
  DrawScratch scratch(std::ssize(logits));
  const auto result = draw(logits, params, history, position, allowed, scratch);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  if (!result) return {};
  return {result->id, result->logprob, {result->top_logprobs.begin(), result->top_logprobs.end()}};
}

std::vector<int32_t> kept_ids(const std::vector<float>& logits, const SamplingParams& params,
                              const TokenHistory& history = kNoHistory) {
  DrawScratch scratch(std::ssize(logits));
  const auto result = distribution(logits, params, history, {}, scratch);
  EXPECT_TRUE(result.has_value()) << result.error().message;
  std::vector<int32_t> ids;
  if (!result) return ids;
  for (const WeightedToken& token : result->tokens) ids.push_back(token.id);
  return ids;
}

std::vector<float> random_logits(size_t count, double deviation, uint64_t seed = 1) {
  const base::RandomStream random = base::random_stream(seed, "logits");
  std::vector<float> logits(count);
  for (size_t i = 0; i < count; ++i) logits[i] = static_cast<float>(deviation * random.normal(i));
  return logits;
}

// Temperature alone, without a list of tokens.
int32_t draw_plainly(const std::vector<float>& logits, double temperature, uint64_t seed,
                     int64_t position) {
  const double max = *std::ranges::max_element(logits);
  const auto weight = [&](float logit) { return std::exp((logit - max) / temperature); };
  double total = 0;
  for (const float logit : logits) total += weight(logit);
  const auto counter = static_cast<uint64_t>(position);
  const double target = base::random_stream(seed, "sample").uniform(counter) * total;
  double sum = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    sum += weight(logits[id]);
    if (sum > target) return static_cast<int32_t>(id);
  }
  return -1;
}

TEST(Sampler, GreedyTakesTheFirstOfEquals) {
  EXPECT_EQ(argmax(std::vector<float>{1, 3, 3, 2}), 1);
  EXPECT_EQ(sample(std::vector<float>{-5, -1, -1}, {.temperature = 0, .seed = 9}, 4), 1);
}

TEST(Sampler, LogSumExpNeitherOverflowsNorUnderflows) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{0, 0, 0, 0}), std::log(4.0), 1e-12);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{3e38f, 0}), 3e38, 1e32);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-1e30f, -1e30f}), -1e30, 1e24);
}

TEST(Sampler, TemperatureAloneDrawsByPlainInverseCdf) {
  for (const double temperature : {0.2, 1.0, 3.0}) {
    for (int64_t position = 0; position < 300; ++position) {
      const auto seed = static_cast<uint64_t>(position % 7);
      const std::vector<float> logits = random_logits(500, 2, seed);
      const SamplingParams params = {.temperature = temperature, .seed = seed};
      const int32_t expected = draw_plainly(logits, temperature, seed, position);
      ASSERT_EQ(drawn(logits, params, position).id, expected);
      ASSERT_EQ(sample(logits, params, position), expected);
    }
  }
}

// Ids as they are drawn for seed 11, positions from 0: a change of this list changes what every
// stored seed gives.
TEST(Sampler, ASeedKeepsItsTokens) {
  const std::vector<float> logits = random_logits(1000, 2, 77);
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < 8; ++i) ids.push_back(sample(logits, {.temperature = 1, .seed = 11}, i));
  EXPECT_EQ(ids, (std::vector<int32_t>{425, 703, 31, 385, 375, 221, 498, 1}));
}

TEST(Sampler, DependsOnSeedAndPositionAlone) {
  const std::vector<float> logits = random_logits(50, 0.3);
  DrawScratch used(400);
  const SamplingParams params = {.temperature = 1, .top_k = 40, .top_p = 0.9, .seed = 1};
  std::vector<int32_t> first;
  std::vector<int32_t> again;
  std::vector<int32_t> other_seed;
  for (int64_t i = 0; i < 40; ++i) {
    first.push_back(drawn(logits, params, i).id);
    SamplingParams other = params;
    other.seed = 2;
    other_seed.push_back(drawn(logits, other, i).id);
  }
  for (int64_t i = 40; i-- > 0;) {
    // What another request left in the scratch does not matter.
    const SamplingParams company = {.temperature = 2, .top_p = 0.5, .num_top_logprobs = 20};
    EXPECT_TRUE(draw(random_logits(400, 1), company, kNoHistory, i, {}, used).has_value());
    again.insert(again.begin(), draw(logits, params, kNoHistory, i, {}, used)->id);
  }
  EXPECT_EQ(again, first);
  EXPECT_NE(other_seed, first);
}

TEST(Sampler, ATinyTemperatureIsGreedy) {
  const std::vector<float> logits = {0.0f, 0.5f, 0.25f};
  for (const double temperature : {1e-5, 1e-6, std::numeric_limits<double>::denorm_min()}) {
    for (int64_t i = 0; i < 100; ++i) {
      EXPECT_EQ(sample(logits, {.temperature = temperature, .seed = 3}, i), 1);
    }
  }
}

TEST(Sampler, TokensOfNoProbabilityAreNeverDrawn) {
  for (const float never : {-std::numeric_limits<float>::max(), kNever}) {
    const std::vector<float> logits = {never, 0.0f, never, 0.0f, never};
    for (int64_t i = 0; i < 200; ++i) {
      EXPECT_EQ(sample(logits, {.temperature = 1, .seed = 4}, i) % 2, 1);
    }
  }
}

TEST(Sampler, TopKOfOneIsGreedyAtAnyTemperature) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<float> logits = random_logits(3000, 1, seed);
    // Whole numbers, so that the largest one occurs often.
    for (float& logit : logits) logit = std::round(logit);
    EXPECT_EQ(drawn(logits, {.temperature = 100, .top_k = 1, .seed = seed}).id, argmax(logits));
  }
}

TEST(Sampler, EqualsOfTheLastPlaceAreCutById) {
  const std::vector<float> logits = {1, 5, 3, 3, 3, 3};
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(kept_ids(logits, {.temperature = 1, .top_k = 3}), (Ids{1, 2, 3}));
  EXPECT_EQ(kept_ids(logits, {.temperature = 1, .min_p = std::exp(-2.0)}), (Ids{1, 2, 3, 4, 5}));
  const std::vector<float> equal(100, 2.5f);
  EXPECT_EQ(kept_ids(equal, {.temperature = 1, .top_p = 0.5}).back(), 49);
  EXPECT_EQ(kept_ids(equal, {.temperature = 1, .top_p = 1e-9}), (Ids{0}));
}

TEST(Sampler, TopKOfTheVocabularyAndMoreKeepsAll) {
  const std::vector<float> logits = random_logits(20, 3);
  for (const int32_t k : {20, 21, std::numeric_limits<int32_t>::max()}) {
    EXPECT_EQ(kept_ids(logits, {.temperature = 1, .top_k = k}).size(), 20);
  }
  EXPECT_EQ(kept_ids(logits, {.temperature = 1, .top_k = 19}).size(), 19);
}

TEST(Sampler, TopKCountsAllowedTokensOnly) {
  const std::vector<float> logits = {9, kNever, 7, kNever, 5};
  EXPECT_EQ(kept_ids(logits, {.temperature = 1, .top_k = 2}), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(kept_ids(logits, {.temperature = 1, .top_k = 4}), (std::vector<int32_t>{0, 2, 4}));
}

// A sort of the whole row, over sizes and k around the limits of the shortlists.
TEST(Sampler, FirstRankedTokensAreThoseOfASort) {
  for (const size_t count : {1u, 31u, 33u, 1023u, 1025u, 20'000u}) {
    std::vector<float> logits = random_logits(count, 2);
    // Ties at every place.
    for (float& logit : logits) logit = std::round(logit * 8) / 8;
    std::vector<int32_t> order(count);
    for (size_t i = 0; i < count; ++i) order[i] = static_cast<int32_t>(i);
    std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
      return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)];
    });
    for (const size_t k : {1u, 2u, 20u, 511u, 512u, 513u, 1024u, 5000u, 19'999u}) {
      if (k > count) break;
      std::vector<int32_t> expected(order.begin(), order.begin() + static_cast<ptrdiff_t>(k));
      std::ranges::sort(expected);
      const SamplingParams params = {.temperature = 1, .top_k = static_cast<int32_t>(k)};
      ASSERT_EQ(kept_ids(logits, params), expected) << count << " tokens, top_k " << k;
    }
  }
}

// The rounding of the threshold to float32 neither takes a token in nor leaves one out.
TEST(Sampler, MinPIsExactBetweenNeighbouringLogits) {
  for (int i = 1; i < 100; ++i) {
    const double min_p = i / 100.0;
    const auto nearest = static_cast<float>(std::log(min_p));
    const std::vector<float> logits = {0, std::nextafter(nearest, -100.0f), nearest,
                                       std::nextafter(nearest, 100.0f)};
    std::vector<int32_t> expected;
    for (int32_t id = 0; id < 4; ++id) {
      if (logits[static_cast<size_t>(id)] >= std::log(min_p)) expected.push_back(id);
    }
    EXPECT_EQ(kept_ids(logits, {.temperature = 1, .min_p = min_p}), expected) << min_p;
  }
}

TEST(Sampler, PenaltiesAndBiasReachGreedyDecoding) {
  TokenHistory history(std::vector<int32_t>{0});
  history.append_output(1);
  history.append_output(1);
  const std::vector<float> logits = {2, 2.5f, 1};
  const auto greedy = [&](const SamplingParams& params) {
    return drawn(logits, params, 0, history).id;
  };
  EXPECT_EQ(greedy({}), 1);
  EXPECT_EQ(greedy({.presence_penalty = 0.6}), 0);
  EXPECT_EQ(greedy({.frequency_penalty = 0.3}), 0);
  EXPECT_EQ(greedy({.repetition_penalty = 3}), 2);
  EXPECT_EQ(greedy({.logit_bias = {{2, 1.75}}}), 2);
  EXPECT_EQ(greedy({.presence_penalty = -2}), 1);
}

TEST(Sampler, AdjustedLogitsStayFinite) {
  constexpr float kMax = std::numeric_limits<float>::max();
  TokenHistory history(std::vector<int32_t>{0, 1, 2});
  const SamplingParams params = {.temperature = 1, .repetition_penalty = 1e-300};
  EXPECT_EQ(drawn({kMax, 1, kNever}, params, 0, history).id, 0);
  EXPECT_EQ(
      drawn({-kMax, kNever, kNever}, {.temperature = 1, .repetition_penalty = 100}, 0, history).id,
      0);
}

TEST(Sampler, AMaskThatAllowsNothingIsAnError) {
  const std::vector<float> logits = {1, 2, 3};
  DrawScratch scratch(3);
  const std::vector<uint32_t> nothing = {0};
  TokenHistory history(std::vector<int32_t>{1});
  for (const double temperature : {0.0, 1.0}) {
    // Neither a bias nor a penalty lifts a mask.
    const SamplingParams params = {
        .temperature = temperature, .repetition_penalty = 0.5, .logit_bias = {{0, 100}}};
    const auto result = draw(logits, params, history, 0, nothing, scratch);
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(result.error().message, "no token may be drawn: the mask forbids all 3 of them");
  }
}

TEST(Sampler, OnlyAllowedTokensAreDrawn) {
  const std::vector<float> logits = random_logits(70, 2);
  TokenMask mask(70);
  for (int32_t id = 0; id < 70; ++id) {
    if (id % 31 != 0) mask.forbid(id);
  }
  std::map<int32_t, int> counts;
  for (int64_t i = 0; i < 2000; ++i) {
    const SamplingParams params = {.temperature = 3, .logit_bias = {{5, 100}}};
    ++counts[drawn(logits, params, i, kNoHistory, mask.words()).id];
  }
  EXPECT_EQ(counts.size(), 3);
  for (const int32_t id : {0, 31, 62}) EXPECT_GT(counts[id], 0);
}

TEST(Sampler, LogprobsAreTheModelsWhateverTheOptions) {
  const std::vector<float> logits = {1, 3, 3, 2, -1};
  TokenHistory history(std::vector<int32_t>{1});
  history.append_output(2);
  TokenMask mask(5);
  mask.forbid(1);
  mask.forbid(2);
  const SamplingParams params = {.temperature = 0.5,
                                 .top_k = 1,
                                 .presence_penalty = 1,
                                 .logit_bias = {{0, 50}},
                                 .num_top_logprobs = 3};
  const Drawn token = drawn(logits, params, 0, history, mask.words());
  const double normalizer = log_sum_exp(logits);
  EXPECT_EQ(token.id, 0);
  EXPECT_DOUBLE_EQ(token.logprob.value(), 1 - normalizer);
  ASSERT_EQ(token.top_logprobs.size(), 3);
  const int32_t expected[] = {1, 2, 3};
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(token.top_logprobs[i].id, expected[i]);
    EXPECT_DOUBLE_EQ(token.top_logprobs[i].logprob,
                     logits[static_cast<size_t>(expected[i])] - normalizer);
  }
}

TEST(Sampler, LogprobsComeOnlyWhereAsked) {
  const std::vector<float> logits = {1, 3};
  EXPECT_FALSE(drawn(logits, {}).logprob.has_value());
  const Drawn own = drawn(logits, {.num_top_logprobs = 0});
  EXPECT_TRUE(own.logprob.has_value());
  EXPECT_TRUE(own.top_logprobs.empty());
  EXPECT_EQ(drawn(logits, {.num_top_logprobs = 20}).top_logprobs.size(), 2);
}

TEST(Sampler, ADrawAllocatesNothing) {
  constexpr int64_t kVocabSize = 5000;
  DrawScratch scratch(kVocabSize);
  const auto memory = [&] {
    return std::tuple(scratch.logits.data(), scratch.logits.capacity(), scratch.kept.data(),
                      scratch.kept.capacity(), scratch.ranked.data(), scratch.ranked.capacity(),
                      scratch.logprobs.data(), scratch.logprobs.capacity());
  };
  const auto before = memory();
  TokenHistory history(std::vector<int32_t>{1, 2, 3});
  TokenMask mask(kVocabSize);
  mask.forbid(7);
  // Ascending, so that each token enters the shortlists.
  std::vector<float> logits(kVocabSize);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i) * 1e-4f;
  for (const int32_t k : {0, 3, 2000, 4999}) {
    for (const double top_p : {0.9, 1.0}) {
      const SamplingParams params = {.temperature = 1,
                                     .top_k = k,
                                     .top_p = top_p,
                                     .min_p = 0.01,
                                     .presence_penalty = 1,
                                     .num_top_logprobs = 20};
      ASSERT_TRUE(draw(logits, params, history, k, mask.words(), scratch).has_value());
    }
  }
  EXPECT_EQ(memory(), before);
}

TEST(SamplerDeathTest, ChecksWhatTheCallerOwes) {
  const std::vector<float> logits = {1, 2, 3};
  DrawScratch scratch(3);
  DrawScratch small(2);
  TokenHistory beyond;
  beyond.append_output(3);
  const std::vector<uint32_t> two_words = {7, 0};
  const auto call = [&](const SamplingParams& params, const TokenHistory& history,
                        std::span<const uint32_t> allowed, DrawScratch& memory) {
    return draw(logits, params, history, 0, allowed, memory).has_value();
  };
  EXPECT_DEATH(call({}, kNoHistory, {}, small), "CHECK failed");
  EXPECT_DEATH(call({}, kNoHistory, two_words, scratch), "CHECK failed");
  EXPECT_DEATH(call({.presence_penalty = 1}, beyond, {}, scratch), "CHECK failed");
  EXPECT_DEATH(call({.logit_bias = {{3, 1}}}, kNoHistory, {}, scratch), "CHECK failed");
  EXPECT_DEATH(sample(logits, {.presence_penalty = 1}, 0), "CHECK failed");
  const std::vector<float> nan = {1, std::numeric_limits<float>::quiet_NaN(), 3};
  EXPECT_DEATH(sample(nan, {.temperature = 1}, 0), "not finite");
}

}  // namespace
}  // namespace ingot::engine
