// Drawing one token from a row of logits with GLM's vocabulary, padding ids masked. The logits
// fall off as those of a trained model do: most of the probability lies on a few hundred ids.
// Then drawing for the sequences of a step, a row each, by the threads of a team; with a small
// vocabulary, whether entering the team pays.

#include <cmath>
#include <cstdint>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/check.h"
#include "base/random.h"
#include "base/thread_team.h"
#include "engine/sampler.h"
#include "engine/step_drawer.h"
#include "engine/token_mask.h"

namespace ingot::engine {
namespace {

constexpr int32_t kVocabSize = 151'552;
constexpr int32_t kNumTokens = 151'365;  // the ids above are padding

std::vector<float> make_logits(double deviation, size_t count = kVocabSize) {
  const base::RandomStream random = base::random_stream(1, "logits");
  std::vector<float> logits(count);
  for (size_t id = 0; id < logits.size(); ++id) {
    logits[id] = static_cast<float>(deviation * random.normal(id));
  }
  return logits;
}

// Enough rows that none stays in the processor's nearer caches from one draw to the next.
class Rows {
 public:
  explicit Rows(double deviation) : rows_(16, make_logits(deviation)), padding_(kVocabSize) {
    for (int32_t id = kNumTokens; id < kVocabSize; ++id) padding_.forbid(id);
    std::vector<int32_t> prompt(20'000);
    const base::RandomStream random = base::random_stream(2, "prompt");
    for (size_t i = 0; i < prompt.size(); ++i) {
      // Squared, so that low ids repeat as frequent words do: about 15,000 distinct ones.
      prompt[i] = static_cast<int32_t>(kNumTokens * std::pow(random.uniform(i), 2));
    }
    history_ = TokenHistory(prompt);
    for (size_t i = 0; i < 1000; ++i) history_.append_output(prompt[i]);
  }

  void draw_one(const SamplingParams& params) {
    const std::vector<float>& row = rows_[static_cast<size_t>(position_) % rows_.size()];
    const auto drawn = draw(row, params, history_, position_++, padding_.words(), scratch_);
    CHECK(drawn.has_value());
    benchmark::DoNotOptimize(drawn->id);
  }

 private:
  std::vector<std::vector<float>> rows_;
  TokenMask padding_;
  TokenHistory history_;
  DrawScratch scratch_{kVocabSize};
  int64_t position_ = 0;
};

// Of a trained model, and of a row in which 100,000 ids and more share the probability.
constexpr double kPeaked = 4;
constexpr double kFlat = 0.5;

void draw_with(benchmark::State& state, const SamplingParams& params, double deviation) {
  Rows rows(deviation);
  for (auto _ : state) rows.draw_one(params);
}

const SamplingParams kGreedy;
const SamplingParams kTemperature = {.temperature = 1};
const SamplingParams kTopP = {.temperature = 1, .top_p = 0.95};
const SamplingParams kTopK = {.temperature = 1, .top_k = 50};
const SamplingParams kTopKTopP = {.temperature = 1, .top_k = 50, .top_p = 0.95};
const SamplingParams kMinP = {.temperature = 1, .min_p = 0.05};
const SamplingParams kPenalties = {
    .temperature = 1, .repetition_penalty = 1.1, .presence_penalty = 0.5};
const SamplingParams kLogprobs = {.temperature = 1, .num_top_logprobs = 20};

void draw_step(benchmark::State& state, const SamplingParams& params) {
  const int64_t vocab_size = state.range(0);
  const int64_t num_sequences = state.range(1);
  base::ThreadTeam team(static_cast<int>(state.range(2)));
  StepDrawer drawer(vocab_size, TokenMask(vocab_size), team);
  const std::vector<float> logits =
      make_logits(kPeaked, static_cast<size_t>(vocab_size * num_sequences));
  scheduler::Batch batch;
  ComputedStep step{.logits = logits};
  for (int64_t i = 0; i < num_sequences; ++i) {
    const auto id = static_cast<scheduler::RequestId>(i);
    drawer.add(id, {}, {.sampling = params});
    batch.sequences.push_back({.request = id, .tokens = {0}, .logit_rows = {0}, .draws = true});
    step.sequences.push_back({.first_logit_row = i});
  }
  std::vector<scheduler::StepResult::Sequence> results;
  std::vector<StepLogprobs> logprobs(batch.sequences.size());
  for (auto _ : state) {
    results.assign(batch.sequences.size(), {});
    drawer.draw(batch, step, results, logprobs);
    CHECK(results.back().tokens.size() == 1);
  }
}

void sizes_of_steps(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"vocabulary", "sequences", "threads"})->UseRealTime();
  benchmark->Unit(benchmark::kMicrosecond);
  for (const int64_t sequences : {1, 16, 64}) {
    for (const int64_t threads : {1, 2}) benchmark->Args({kVocabSize, sequences, threads});
  }
  for (const int64_t sequences : {4, 16, 64, 256}) {
    for (const int64_t threads : {1, 2}) benchmark->Args({1024, sequences, threads});
  }
}

BENCHMARK_CAPTURE(draw_with, greedy, kGreedy, kPeaked);
BENCHMARK_CAPTURE(draw_with, temperature, kTemperature, kPeaked);
BENCHMARK_CAPTURE(draw_with, top_p_95, kTopP, kPeaked);
BENCHMARK_CAPTURE(draw_with, top_p_95_flat, kTopP, kFlat);
BENCHMARK_CAPTURE(draw_with, top_k_50, kTopK, kPeaked);
BENCHMARK_CAPTURE(draw_with, top_k_50_top_p_95, kTopKTopP, kPeaked);
BENCHMARK_CAPTURE(draw_with, min_p_5, kMinP, kPeaked);
BENCHMARK_CAPTURE(draw_with, penalties, kPenalties, kPeaked);
BENCHMARK_CAPTURE(draw_with, top_logprobs_20, kLogprobs, kPeaked);
BENCHMARK_CAPTURE(draw_step, greedy, kGreedy)->Apply(sizes_of_steps);
BENCHMARK_CAPTURE(draw_step, temperature, kTemperature)->Apply(sizes_of_steps);
BENCHMARK_CAPTURE(draw_step, top_p_95, kTopP)->Apply(sizes_of_steps);

}  // namespace
}  // namespace ingot::engine
