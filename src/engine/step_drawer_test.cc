#include "engine/step_drawer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"

namespace ingot::engine {
namespace {

// Requests that run side by side on a made-up model, whose row of logits follows from the token
// before and its position. Drafts are its greedy chain.
class MadeUpRun {
 public:
  MadeUpRun(StepDrawer& drawer, int32_t vocab_size) : drawer_(drawer), vocab_size_(vocab_size) {}

  void add(scheduler::RequestId id, DrawingOptions options) {
    drawer_.add(id, std::vector<int32_t>{kPromptToken}, std::move(options));
    outputs[id] = {};
  }

  // Of every request that did not fail.
  void step(int32_t num_drafts) {
    scheduler::Batch batch;
    ComputedStep computed;
    logits_.clear();
    for (const auto& [id, output] : outputs) {
      if (!errors[id].empty()) continue;
      const int32_t last = output.empty() ? kPromptToken : output.back();
      batch.sequences.push_back({.request = id,
                                 .first_position = static_cast<int32_t>(output.size()),
                                 .tokens = {last},
                                 .logit_rows = {0},
                                 .draws = true});
      computed.sequences.push_back({.first_logit_row = std::ssize(logits_) / vocab_size_});
      append_rows(last, static_cast<int32_t>(output.size()), num_drafts,
                  computed.sequences.back().drafts);
    }
    computed.logits = logits_;
    std::vector<scheduler::StepResult::Sequence> results(batch.sequences.size());
    logprobs.assign(batch.sequences.size(), {});
    drawer_.draw(batch, computed, results, logprobs);
    for (size_t i = 0; i < results.size(); ++i) {
      const scheduler::RequestId id = batch.sequences[i].request;
      errors[id] = results[i].error;
      std::ranges::copy(results[i].tokens, std::back_inserter(outputs[id]));
      for (size_t draft = 0; draft + 1 < results[i].tokens.size(); ++draft) {
        ++num_accepted;
        ++num_accepted_at[draft];
      }
    }
  }

  // Until every request has `num_tokens`; what it has more is cut.
  void run(int32_t num_drafts, size_t num_tokens) {
    while (std::ranges::any_of(outputs, [&](const auto& output) {
      return errors[output.first].empty() && output.second.size() < num_tokens;
    })) {
      step(num_drafts);
    }
    for (auto& [id, output] : outputs) output.resize(std::min(output.size(), num_tokens));
  }

  int64_t num_logits() const { return std::ssize(logits_); }

  std::map<scheduler::RequestId, std::vector<int32_t>> outputs;
  std::map<scheduler::RequestId, std::string> errors;
  std::vector<StepLogprobs> logprobs;  // of the last step
  int64_t num_accepted = 0;
  std::array<int64_t, 8> num_accepted_at = {};  // by position in the chain

 private:
  static constexpr int32_t kPromptToken = 1;

  void append_rows(int32_t token, int32_t position, int32_t num_drafts,
                   std::vector<int32_t>& drafts) {
    for (int32_t i = 0; i <= num_drafts; ++i) {
      const base::RandomStream random = base::random_stream(
          (static_cast<uint64_t>(token) << 32) + static_cast<uint64_t>(position + i), "row");
      for (int32_t id = 0; id < vocab_size_; ++id) {
        logits_.push_back(static_cast<float>(3 * random.normal(static_cast<uint64_t>(id))));
      }
      if (i == num_drafts) break;
      token = argmax(std::span(logits_).last(static_cast<size_t>(vocab_size_)));
      drafts.push_back(token);
    }
  }

  StepDrawer& drawer_;
  const int32_t vocab_size_;
  std::vector<float> logits_;
};

DrawingOptions drawn_at(double temperature, uint64_t seed) {
  return {.sampling = {.temperature = temperature, .seed = seed}};
}

// Sixteen requests, with every option that leaves something in a member's memory.
void add_all(MadeUpRun& run) {
  for (uint64_t id = 0; id < 16; ++id) {
    DrawingOptions options = drawn_at(0.1 * static_cast<double>(id), id);
    if (id % 4 == 1) options.sampling.num_top_logprobs = 3;
    if (id % 4 == 2) options.sampling.top_p = 0.8;
    if (id % 4 == 3) options.sampling.repetition_penalty = 1.5;
    if (id % 8 == 4) options.min_tokens = 20, options.stop_token_ids = {1, 2, 3};
    run.add(id, std::move(options));
  }
}

TEST(StepDrawer, WhoDrawsChangesNothing) {
  constexpr int32_t kVocabSize = 4096;
  std::vector<MadeUpRun> runs;
  for (const int threads : {1, 2, 5}) {
    base::ThreadTeam team(threads);
    StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
    MadeUpRun& run = runs.emplace_back(drawer, kVocabSize);
    add_all(run);
    for (int step = 0; step < 20; ++step) {
      run.step(2);
      ASSERT_GE(run.num_logits(), StepDrawer::kSharedLogitsMin);
      if (threads == 1) continue;
      for (size_t i = 1; step == 19 && i < 16; i += 4) {
        ASSERT_EQ(run.logprobs[i].drawn.size(), runs[0].logprobs[i].drawn.size());
        const TokenLogprobs& got = run.logprobs[i].drawn.back();
        const TokenLogprobs& want = runs[0].logprobs[i].drawn.back();
        EXPECT_EQ(got.token.logprob, want.token.logprob);
        EXPECT_EQ(got.top[2].id, want.top[2].id);
      }
    }
    EXPECT_GT(run.num_accepted, 100);
    EXPECT_EQ(run.outputs, runs[0].outputs) << threads << " threads";
  }
}

TEST(StepDrawer, DraftsChangeNothing) {
  constexpr int32_t kVocabSize = 64;
  base::ThreadTeam team(1);
  std::map<scheduler::RequestId, std::vector<int32_t>> plain;
  for (const int32_t num_drafts : {0, 1, 4}) {
    StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
    MadeUpRun run(drawer, kVocabSize);
    add_all(run);
    run.run(num_drafts, 60);
    if (num_drafts == 0) plain = run.outputs;
    EXPECT_EQ(run.outputs, plain) << num_drafts << " drafts";
    EXPECT_EQ(run.num_accepted > 0, num_drafts > 0);
  }
}

// Ids that follow each other are even and odd by turns; the prompt's last one is odd. Keeps what it
// was told.
struct Alternation {
  explicit Alternation(int32_t vocab_size) : even(vocab_size), odd(vocab_size) {
    for (int32_t id = 0; id < vocab_size; ++id) (id % 2 == 0 ? odd : even).forbid(id);
  }

  std::span<const uint32_t> allowed() const {
    return (told.empty() || told.back() % 2 == 1 ? even : odd).words();
  }

  TokenMask even;
  TokenMask odd;
  std::vector<int32_t> told;
};

TokenGrammar grammar_of(const std::shared_ptr<Alternation>& alternation) {
  return {.allowed = [=] { return alternation->allowed(); },
          .tell = [=](int32_t id) { alternation->told.push_back(id); }};
}

TEST(StepDrawer, AGrammarIsKeptToAndDraftsChangeNothing) {
  constexpr int32_t kVocabSize = 64;
  base::ThreadTeam team(1);
  std::map<scheduler::RequestId, std::vector<int32_t>> plain;
  for (const int32_t num_drafts : {0, 1, 4}) {
    StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
    MadeUpRun run(drawer, kVocabSize);
    std::vector<std::shared_ptr<Alternation>> grammars;
    for (uint64_t id = 0; id < 8; ++id) {
      DrawingOptions options = drawn_at(0.2 * static_cast<double>(id), id);
      grammars.push_back(std::make_shared<Alternation>(kVocabSize));
      options.grammar = grammar_of(grammars.back());
      run.add(id, std::move(options));
    }
    run.run(num_drafts, 60);
    if (num_drafts == 0) plain = run.outputs;
    EXPECT_EQ(run.outputs, plain) << num_drafts << " drafts";
    EXPECT_EQ(run.num_accepted > 0, num_drafts > 0);
    for (auto& [id, output] : run.outputs) {
      EXPECT_EQ(run.errors[id], "");
      for (size_t i = 0; i < output.size(); ++i) EXPECT_EQ(output[i] % 2 == 1, i % 2 == 1);
      std::vector<int32_t>& told = grammars[id]->told;
      ASSERT_GE(told.size(), output.size());
      told.resize(output.size());
      EXPECT_EQ(told, output) << "each accepted token is told once";
    }
  }
}

// Drafts may go on after the stop id; the grammar of a complete text allows nothing there.
TEST(StepDrawer, AGrammarEndsWithItsStop) {
  constexpr int32_t kVocabSize = 64;
  base::ThreadTeam team(1);
  StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
  MadeUpRun run(drawer, kVocabSize);
  run.add(0, {});
  run.run(0, 5);
  const std::vector<int32_t> greedy = run.outputs[0];

  const auto told = std::make_shared<std::vector<int32_t>>();
  const TokenMask all(kVocabSize);
  const std::vector<uint32_t> nothing(TokenMask::num_words(kVocabSize));
  const TokenGrammar grammar = {
      .allowed = [&] { return told->size() < 3 ? all.words() : std::span(nothing); },
      .tell = [=](int32_t id) { told->push_back(id); }};
  run.add(9, {.stop_token_ids = {greedy[2]}, .grammar = grammar});
  run.outputs = {{9, {}}};
  run.step(4);
  EXPECT_EQ(run.errors[9], "");
  EXPECT_EQ(run.outputs[9], greedy) << "as without the grammar";
  EXPECT_EQ(*told, std::vector(greedy.begin(), greedy.begin() + 3));

  told->clear();
  run.add(10, {.grammar = grammar});
  run.outputs = {{10, {}}};
  run.step(4);
  EXPECT_TRUE(run.errors[10].contains("the mask forbids all 64")) << run.errors[10];
  EXPECT_TRUE(run.outputs[10].empty());
}

TEST(StepDrawer, AGrammarAndMinTokensBothHold) {
  constexpr int32_t kVocabSize = 64;
  base::ThreadTeam team(1);
  StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
  MadeUpRun run(drawer, kVocabSize);
  TokenMask few(kVocabSize);
  for (int32_t id = 0; id < kVocabSize; ++id) few.forbid(id);
  few.allow(7);
  few.allow(8);
  DrawingOptions options = drawn_at(1, 0);
  options.sampling.logit_bias = {{.id = 7, .bias = 100}};
  options.stop_token_ids = {7};
  options.min_tokens = 3;
  options.grammar = TokenGrammar{.allowed = [&] { return few.words(); }, .tell = [](int32_t) {}};
  run.add(1, std::move(options));
  run.run(2, 4);
  EXPECT_EQ(run.outputs[1], (std::vector<int32_t>{8, 8, 8, 7}));
}

TEST(StepDrawer, WhatAGrammarThrowsIsTheErrorOfItsRequest) {
  constexpr int32_t kVocabSize = 4096;
  base::ThreadTeam team(2);
  StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team);
  MadeUpRun run(drawer, kVocabSize);
  add_all(run);
  DrawingOptions failing = drawn_at(1, 0);
  failing.sampling.num_top_logprobs = 1;
  failing.grammar = TokenGrammar{.allowed = []() -> std::span<const uint32_t> { return {}; },
                                 .tell =
                                     [num_told = 0](int32_t) mutable {
                                       if (++num_told == 3) throw std::runtime_error("no\nrule");
                                     }};
  run.add(20, failing);
  failing.grammar->tell = [](int32_t) { throw std::bad_alloc(); };
  run.add(21, failing);
  for (int step = 0; step < 3; ++step) run.step(1);
  ASSERT_GE(run.num_logits(), StepDrawer::kSharedLogitsMin);
  EXPECT_EQ(run.errors[20], "the step failed: no rule");
  EXPECT_TRUE(run.errors[21].contains("out of memory")) << run.errors[21];
  EXPECT_TRUE(run.outputs[21].empty());

  StepDrawer others(kVocabSize, TokenMask(kVocabSize), team);
  MadeUpRun alone(others, kVocabSize);
  add_all(alone);
  for (int step = 0; step < 3; ++step) alone.step(1);
  for (const auto& [id, output] : alone.outputs) EXPECT_EQ(run.outputs[id], output);
}

TEST(StepDrawer, SimulatesTheAcceptanceThatItIsGiven) {
  constexpr int32_t kVocabSize = 64;
  const std::vector<double> acceptance = {0.8, 0.5, 0.25};
  base::ThreadTeam team(1);
  std::map<scheduler::RequestId, std::vector<int32_t>> first;
  for (const int turn : {0, 1}) {
    StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team, acceptance);
    MadeUpRun run(drawer, kVocabSize);
    for (uint64_t id = 0; id < 20; ++id) run.add(id, drawn_at(1, id));
    for (int step = 0; step < 300; ++step) run.step(4);
    // Of n chains that came to a position n * p are right there, give or take four deviations.
    double num_reached = 20 * 300;
    for (size_t i = 0; i < acceptance.size(); ++i) {
      const double p = acceptance[i];
      const auto num_accepted = static_cast<double>(run.num_accepted_at[i]);
      EXPECT_NEAR(num_accepted, num_reached * p, 4 * std::sqrt(num_reached * p * (1 - p)));
      num_reached = num_accepted;
    }
    EXPECT_EQ(run.num_accepted_at[3], 0);
    if (turn == 0) first = run.outputs;
    EXPECT_EQ(run.outputs, first) << "the same seeds";
  }
}

TEST(StepDrawer, SimulatesNoDraftThatMayNotBeDrawn) {
  constexpr int32_t kVocabSize = 64;
  base::ThreadTeam team(1);
  StepDrawer drawer(kVocabSize, TokenMask(kVocabSize), team, {1, 1, 1});
  MadeUpRun run(drawer, kVocabSize);
  const auto alternation = std::make_shared<Alternation>(kVocabSize);
  DrawingOptions options = drawn_at(1, 0);
  options.sampling.num_top_logprobs = 2;
  options.grammar = grammar_of(alternation);
  run.add(1, std::move(options));
  int64_t num_drafted = 0;
  while (run.outputs[1].size() < 100) {
    run.step(3);
    num_drafted += 3;
    const std::vector<TokenLogprobs>& told = run.logprobs[0].drawn;
    for (size_t i = 0; i + 1 < told.size(); ++i) {
      EXPECT_EQ(told[i].token.id, told[i].top[0].id) << "drafts are the likeliest tokens";
      EXPECT_EQ(told[i].token.logprob, told[i].top[0].logprob);
    }
  }
  EXPECT_GT(run.num_accepted, 0);
  EXPECT_LT(run.num_accepted, num_drafted);
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(run.outputs[1][i] % 2 == 1, i % 2 == 1);
}

// Each of two draws waits for the other, so it takes two threads; with too few logits for that one
// thread draws.
TEST(StepDrawer, TheTeamSharesOutLargeStepsAlone) {
  const base::SystemClock clock;
  base::ThreadTeam team(2);
  for (const bool large : {true, false}) {
    const auto vocab_size = static_cast<int32_t>(StepDrawer::kSharedLogitsMin / (large ? 2 : 4));
    StepDrawer drawer(vocab_size, TokenMask(vocab_size), team);
    MadeUpRun run(drawer, vocab_size);
    std::atomic<int> num_here{0};
    std::mutex mutex;
    std::set<std::thread::id> threads;
    const auto meet = [&]() -> std::span<const uint32_t> {
      ++num_here;
      const base::Instant until = clock.now() + std::chrono::seconds(60);
      while (large && num_here < 2 && clock.now() < until) std::this_thread::yield();
      const std::scoped_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      return {};
    };
    const TokenGrammar grammar = {.allowed = meet, .tell = [](int32_t) {}};
    for (const uint64_t id : {1, 2}) run.add(id, {.grammar = grammar});
    run.step(0);
    EXPECT_EQ(threads.size(), large ? 2u : 1u);
  }
}

}  // namespace
}  // namespace ingot::engine
