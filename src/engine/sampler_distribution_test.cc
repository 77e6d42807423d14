// Whether 100,000 draws follow the distribution that the options state.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "engine/token_mask.h"

namespace ingot::engine {
namespace {

constexpr int kNumDraws = 100'000;
constexpr size_t kVocabSize = 12;
const std::vector<float> kLogits = {0.3f, -1.2f, 1.9f,  0.0f, 1.1f, -0.4f,
                                    1.1f, 2.2f,  -2.5f, 0.8f, 1.7f, -0.1f};

struct Case {
  std::string name;
  SamplingParams params;
  std::vector<int32_t> forbidden;
};

TokenHistory some_history() {
  TokenHistory history(std::vector<int32_t>{2, 3, 3, 8});
  for (const int32_t id : {7, 7, 10, 3}) history.append_output(id);
  return history;
}

// The definition in sampling_params.h, over a sorted row.
std::vector<double> stated_probabilities(const Case& c) {
  const SamplingParams& params = c.params;
  std::vector<double> logits(kLogits.begin(), kLogits.end());
  for (const int32_t id : c.forbidden) logits[static_cast<size_t>(id)] = -INFINITY;
  for (const TokenBias& entry : params.logit_bias) {
    logits[static_cast<size_t>(entry.id)] += entry.bias;
  }
  const TokenHistory history = some_history();
  for (const TokenHistory::Count& count : history.counts()) {
    double& logit = logits[static_cast<size_t>(count.id)];
    logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
    logit -= params.frequency_penalty * count.in_output;
    logit -= params.presence_penalty * (count.in_output > 0 ? 1 : 0);
  }
  std::vector<size_t> order(kVocabSize);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return logits[a] > logits[b]; });
  std::vector<double> weights(kVocabSize);
  for (size_t rank = 0; rank < kVocabSize; ++rank) {
    const double weight = std::exp((logits[order[rank]] - logits[order[0]]) / params.temperature);
    const bool in_top_k = params.top_k == 0 || rank < static_cast<size_t>(params.top_k);
    if (in_top_k && weight >= params.min_p) weights[order[rank]] = weight;
  }
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  double sum = 0;
  double kept = 0;
  for (const size_t id : order) {
    if (sum >= params.top_p * total) weights[id] = 0;
    sum += weights[id];
    kept += weights[id];
  }
  for (double& weight : weights) weight /= kept;
  return weights;
}

std::vector<int> draw_counts(const Case& c) {
  TokenMask mask(kVocabSize);
  for (const int32_t id : c.forbidden) mask.forbid(id);
  const TokenHistory history = some_history();
  DrawScratch scratch(kVocabSize);
  std::vector<int> counts(kVocabSize);
  for (int64_t i = 0; i < kNumDraws; ++i) {
    const auto token = draw(kLogits, c.params, history, i, mask.words(), scratch);
    ++counts[static_cast<size_t>(token.value().id)];
  }
  return counts;
}

// Pearson's statistic, as many standard deviations above its mean as a normal variable would be
// (Wilson and Hilferty 1931); infinite where something without probability was drawn.
double deviations(const std::vector<int>& counts, const std::vector<double>& probabilities) {
  double statistic = 0;
  int num_drawable = 0;
  for (size_t id = 0; id < counts.size(); ++id) {
    if (probabilities[id] == 0) {
      if (counts[id] != 0) return INFINITY;
      continue;
    }
    const double expected = kNumDraws * probabilities[id];
    statistic += std::pow(counts[id] - expected, 2) / expected;
    ++num_drawable;
  }
  if (num_drawable == 1) return 0;
  const double freedom = num_drawable - 1;
  const double width = 2 / (9 * freedom);
  return (std::cbrt(statistic / freedom) - (1 - width)) / std::sqrt(width);
}

std::vector<Case> cases() {
  const SamplingParams plain = {.temperature = 1, .seed = 21};
  std::vector<Case> cases;
  const auto add = [&](std::string name, auto change, std::vector<int32_t> forbidden = {}) {
    Case c = {.name = std::move(name), .params = plain, .forbidden = std::move(forbidden)};
    change(c.params);
    // Each draws its own numbers.
    c.params.seed += cases.size();
    cases.push_back(std::move(c));
  };
  for (const double temperature : {0.3, 1.0, 2.5}) {
    const std::string at = "temperature " + std::to_string(temperature);
    const auto with = [temperature](auto change) {
      return [temperature, change](SamplingParams& p) {
        p.temperature = temperature;
        change(p);
      };
    };
    add(at, with([](SamplingParams&) {}));
    add(at + " top_k", with([](SamplingParams& p) { p.top_k = 4; }));
    add(at + " top_p", with([](SamplingParams& p) { p.top_p = 0.7; }));
    add(at + " min_p", with([](SamplingParams& p) { p.min_p = 0.15; }));
    add(at + " repetition", with([](SamplingParams& p) { p.repetition_penalty = 1.6; }));
    add(at + " presence", with([](SamplingParams& p) { p.presence_penalty = -1.2; }));
    add(at + " frequency", with([](SamplingParams& p) { p.frequency_penalty = 0.8; }));
    add(at + " bias", with([](SamplingParams& p) { p.logit_bias = {{1, 2.5}, {7, -1.5}}; }));
    add(at + " mask", with([](SamplingParams&) {}), {7, 2, 0});
    add(at + " all", with([](SamplingParams& p) {
          p.top_k = 7;
          p.top_p = 0.9;
          p.min_p = 0.05;
          p.repetition_penalty = 1.2;
          p.presence_penalty = 0.3;
          p.frequency_penalty = 0.2;
          p.logit_bias = {{1, 2.5}, {11, 1}};
        }),
        {4, 5});
  }
  return cases;
}

TEST(SamplerDistribution, DrawsOfEveryOptionPassAChiSquareTest) {
  for (const Case& c : cases()) {
    // One in 30,000 for each of 30; the seeds are fixed, so it passes or fails for good.
    EXPECT_LT(deviations(draw_counts(c), stated_probabilities(c)), 4) << c.name;
  }
}

// The test above sees an option that is left out, or off by a little.
TEST(SamplerDistribution, AnotherDistributionFailsTheChiSquareTest) {
  const std::vector<Case> all = cases();
  const std::vector<int> plain_counts = draw_counts(all[10]);
  ASSERT_EQ(all[10].name, "temperature " + std::to_string(1.0));
  for (size_t i = 11; i < 20; ++i) {
    EXPECT_GT(deviations(plain_counts, stated_probabilities(all[i])), 10) << all[i].name;
  }
  Case warmer = all[10];
  warmer.params.temperature = 1.03;
  EXPECT_GT(deviations(plain_counts, stated_probabilities(warmer)), 4);
}

}  // namespace
}  // namespace ingot::engine
