#include "engine/step_drawer.h"

#include <algorithm>
#include <map>
#include <string>

#include <gtest/gtest.h>

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
      num_accepted += std::max<int64_t>(std::ssize(results[i].tokens) - 1, 0);
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

}  // namespace
}  // namespace ingot::engine
