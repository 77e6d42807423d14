// What a request answers depends on the request alone, bit for bit: not on company, chunks, cached
// prefixes, preemption, threads, or what was drafted. On the bundled model, whose drafts are
// mostly right, under the real scheduler and executor.

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>

#include <gtest/gtest.h>

#include "parity/served_model.h"

namespace ingot::parity {
namespace {

using scheduler::SchedulerConfig;
using scheduler::SpeculationMode;

SchedulerConfig roomy() {
  return {.num_pages = 400, .num_slots = 16, .max_context = 512, .max_step_tokens = 256};
}

SchedulerConfig speculating(int32_t depth, SchedulerConfig config = roomy()) {
  config.speculation = SpeculationMode::kFixed;
  config.max_draft_tokens = depth;
  return config;
}

// Twelve requests: three kinds of text, half of them with a common beginning; greedy and drawn,
// with every option of drawing somewhere.
std::vector<ServedRequest> requests(const ServedModel& model) {
  const std::vector<std::string> texts = {
      "[gMASK]<sop><|user|>Tom has 12 apples and buys 7 more. How many apples does he have?"
      "<|assistant|><think>",
      "[gMASK]<sop><|user|>Tell me a story about a cat.<|assistant|><think></think>",
      "[gMASK]<sop><|system|>You are a helpful "
      "assistant.<|user|>Hello!<|assistant|><think></think>"};
  std::vector<ServedRequest> all;
  for (uint64_t id = 0; id < 12; ++id) {
    ServedRequest& served = all.emplace_back();
    served.request.id = id;
    served.request.prompt = model.tokens_of(texts[id % 3]);
    served.request.max_tokens = static_cast<int32_t>(20 + 3 * id);
    served.request.priority = static_cast<int32_t>(id % 2);
    engine::SamplingParams& sampling = served.drawing.sampling;
    sampling.seed = 1000 + id;
    if (id >= 3) sampling.temperature = 0.4 + 0.15 * static_cast<double>(id);
    if (id == 4) sampling.top_k = 20;
    if (id == 5) sampling.top_p = 0.9;
    if (id == 6) sampling.min_p = 0.02;
    if (id == 7) sampling.repetition_penalty = 1.2;
    if (id == 8) sampling.frequency_penalty = 0.7, sampling.presence_penalty = 0.3;
    if (id == 9) sampling.logit_bias = {{.id = 300, .bias = 4}, {.id = 17, .bias = -100}};
    if (id == 10) {
      served.drawing.min_tokens = served.request.min_tokens = 15;
      served.drawing.stop_token_ids = served.request.stop_token_ids = {10, 11, 12, 300, 301, 302};
    }
    if (id % 4 == 1) sampling.num_top_logprobs = 2;
  }
  return all;
}

void expect_equal(const ServedAnswer& got, const ServedAnswer& want) {
  EXPECT_EQ(got.tokens, want.tokens);
  EXPECT_EQ(got.report.reason, want.report.reason);
  ASSERT_GE(got.logprobs.size(), want.tokens.size() * (want.logprobs.empty() ? 0 : 1));
  for (size_t i = 0; i < want.tokens.size() && !want.logprobs.empty(); ++i) {
    EXPECT_EQ(got.logprobs[i].token.id, want.logprobs[i].token.id);
    EXPECT_EQ(got.logprobs[i].token.logprob, want.logprobs[i].token.logprob);
    ASSERT_EQ(got.logprobs[i].top.size(), 2u);
    EXPECT_EQ(got.logprobs[i].top[1].logprob, want.logprobs[i].top[1].logprob);
  }
}

class ServedRequests : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    model_ = new ServedModel(1);
    alone_ = new std::map<scheduler::RequestId, ServedAnswer>();
    for (const ServedRequest& served : requests(*model_)) {
      alone_->merge(model_->serve(roomy(), {served}).answers);
    }
  }
  static void TearDownTestSuite() {
    delete model_;
    delete alone_;
  }

  static scheduler::SchedulerStats expect_same(const SchedulerConfig& config,
                                               ServedModel& model = *model_) {
    const ServedModel::Run run = model.serve(config, requests(model));
    expect_as_alone(run);
    return run.stats;
  }

  static void expect_as_alone(const ServedModel::Run& run) {
    EXPECT_EQ(run.answers.size(), alone_->size());
    for (const auto& [id, answer] : run.answers) {
      SCOPED_TRACE(testing::Message() << "request " << id);
      expect_equal(answer, alone_->at(id));
    }
  }

  static ServedModel* model_;
  static std::map<scheduler::RequestId, ServedAnswer>* alone_;
};
ServedModel* ServedRequests::model_ = nullptr;
std::map<scheduler::RequestId, ServedAnswer>* ServedRequests::alone_ = nullptr;

TEST_F(ServedRequests, CompanyDoesNotMatter) {
  SchedulerConfig config = roomy();
  config.prefix_cache = false;
  EXPECT_EQ(expect_same(config).num_hit_tokens, 0);
}

TEST_F(ServedRequests, CachedPrefixesDoNotMatter) {
  EXPECT_GT(expect_same(roomy()).num_hit_tokens, 0);
}

TEST_F(ServedRequests, ChunksDoNotMatter) {
  SchedulerConfig config = roomy();
  config.max_step_tokens = config.num_slots + 5;
  expect_same(config);
}

TEST_F(ServedRequests, SpeculationDoesNotMatterAtAnyDepth) {
  for (const int32_t depth : {1, 2, 5}) {
    SCOPED_TRACE(testing::Message() << "depth " << depth);
    const scheduler::SchedulerStats stats = expect_same(speculating(depth));
    EXPECT_GT(stats.num_accepted_tokens, 0) << "some are right";
    EXPECT_GT(stats.num_rejected_tokens, 0) << "some are wrong";
  }
}

TEST_F(ServedRequests, AnAutomaticDepthDoesNotMatter) {
  SchedulerConfig config = speculating(4);
  config.speculation = SpeculationMode::kAuto;
  expect_same(config);
}

// Half of the requests come later, with a higher priority, and take the room of others.
TEST_F(ServedRequests, PreemptionDoesNotMatter) {
  for (const int32_t depth : {0, 3}) {
    for (const bool cache : {false, true}) {
      SCOPED_TRACE(testing::Message() << "depth " << depth << ", cache " << cache);
      SchedulerConfig config = depth == 0 ? roomy() : speculating(depth);
      config.prefix_cache = cache;
      config.num_pages = 20;
      config.max_context = 200;
      std::vector<ServedRequest> served = requests(*model_);
      for (ServedRequest& request : served) {
        if (request.request.priority > 0) request.arrives_before_step = 8;
      }
      const ServedModel::Run run = model_->serve(config, served);
      expect_as_alone(run);
      EXPECT_GT(run.stats.num_preemptions, 0);
    }
  }
}

// Its rows are written for later, and nobody drafts.
TEST_F(ServedRequests, AnMtpLayerThatDraftsNothingDoesNotMatter) {
  SchedulerConfig config = roomy();
  config.writes_mtp_rows = true;
  EXPECT_GT(expect_same(config).num_read_only_tokens, 0) << "for hidden states";
}

// Even and odd ids by turns, the first one even.
engine::TokenGrammar alternation(int32_t vocab_size) {
  struct State {
    std::vector<engine::TokenMask> allowed;
    size_t num_told = 0;
  };
  const auto state = std::make_shared<State>();
  for (int32_t parity = 0; parity < 2; ++parity) {
    engine::TokenMask& mask = state->allowed.emplace_back(vocab_size);
    for (int32_t id = 1 - parity; id < vocab_size; id += 2) mask.forbid(id);
  }
  return {.allowed = [=] { return state->allowed[state->num_told % 2].words(); },
          .tell = [=](int32_t) { ++state->num_told; }};
}

TEST_F(ServedRequests, AGrammarIsKeptToWhateverIsDraftedAndPreempted) {
  SchedulerConfig tight = speculating(3);
  tight.num_pages = 20;
  tight.max_context = 200;
  ServedModel::Run plain;
  for (const SchedulerConfig& config : {roomy(), speculating(1), speculating(4), tight}) {
    SCOPED_TRACE(testing::Message() << "depth " << config.max_draft_tokens);
    std::vector<ServedRequest> served = requests(*model_);
    std::erase_if(served, [](const ServedRequest& s) { return s.request.min_tokens > 0; });
    for (ServedRequest& s : served) {
      s.drawing.grammar = alternation(model_->vocab_size());
      if (config.num_pages == 20 && s.request.priority > 0) s.arrives_before_step = 8;
    }
    ServedModel::Run run = model_->serve(config, served);
    for (const ServedRequest& s : served) {
      const ServedAnswer& answer = run.answers.at(s.request.id);
      EXPECT_EQ(answer.report.error, "");
      for (size_t i = 0; i < answer.tokens.size(); ++i) EXPECT_EQ(answer.tokens[i] % 2, i % 2);
      if (plain.answers.empty()) continue;
      SCOPED_TRACE(testing::Message() << "request " << s.request.id);
      expect_equal(answer, plain.answers.at(s.request.id));
    }
    EXPECT_EQ(run.stats.num_accepted_tokens > 0, config.max_draft_tokens > 0);
    EXPECT_EQ(run.stats.num_preemptions > 0, config.num_pages == 20);
    if (plain.answers.empty()) plain = std::move(run);
  }
}

TEST_F(ServedRequests, ThreadsDoNotMatter) {
  ServedModel two(2);
  expect_same(speculating(3), two);
}

TEST_F(ServedRequests, PromptLogprobsAreThoseOfTheWholePromptAtOnce) {
  ServedRequest served = requests(*model_)[0];
  served.request.wants_prompt_logits = true;
  served.drawing.wants_prompt_logprobs = true;
  served.drawing.sampling.num_top_logprobs = 1;
  const ServedAnswer whole = model_->serve(roomy(), {served}).answers.at(0);
  ASSERT_EQ(whole.prompt_logprobs.size(), served.request.prompt.size() - 1);
  SchedulerConfig config = speculating(2);
  config.max_logit_rows = config.num_slots + 1;
  const ServedAnswer chunks = model_->serve(config, {served}).answers.at(0);
  ASSERT_EQ(chunks.prompt_logprobs.size(), whole.prompt_logprobs.size());
  for (size_t i = 0; i < whole.prompt_logprobs.size(); ++i) {
    EXPECT_EQ(whole.prompt_logprobs[i].token.id, served.request.prompt[i + 1]);
    EXPECT_EQ(chunks.prompt_logprobs[i].token.logprob, whole.prompt_logprobs[i].token.logprob);
  }
  EXPECT_EQ(whole.tokens, alone_->at(0).tokens);
}

struct Fault {
  const char* reported;
  std::function<bool(scheduler::Batch&)> plant;  // false: this batch has no place for it
};

// An entry of the batch that begins with what it found in the cache.
scheduler::Batch::Sequence* find_hit(scheduler::Batch& batch) {
  const auto is_hit = [](const auto& entry) { return entry.num_read_only_tokens > 0; };
  const auto found = std::ranges::find_if(batch.sequences, is_hit);
  return found == batch.sequences.end() ? nullptr : &*found;
}

const std::vector<Fault> kFaults = {
    {.reported = "which holds another prefix",
     .plant =
         [](scheduler::Batch& batch) {
           scheduler::Batch::Sequence* hit = find_hit(batch);
           if (hit == nullptr) return false;
           std::swap(hit->new_pages.front(), hit->new_pages.back());
           return true;
         }},
    {.reported = "which others read",
     .plant =
         [](scheduler::Batch& batch) {
           if (batch.sequences.size() < 2 || find_hit(batch) != nullptr) return false;
           batch.sequences[1].new_pages.back() = batch.sequences[0].new_pages.back();
           return true;
         }},
    {.reported = "has a wrong token at position",
     .plant =
         [](scheduler::Batch& batch) {
           --batch.sequences.back().first_position;
           return batch.sequences.back().first_position > 0;
         }},
    {.reported = "the last one's hidden state is missing",
     .plant =
         [](scheduler::Batch& batch) {
           scheduler::Batch::Sequence* hit = find_hit(batch);
           if (hit == nullptr) return false;
           hit->num_read_only_tokens = 0;
           ++hit->first_position;
           hit->tokens.erase(hit->tokens.begin());
           for (int32_t& row : hit->logit_rows) --row;
           return true;
         }},
    {.reported = "has ended and keeps its slot",
     .plant =
         [](scheduler::Batch& batch) {
           const bool had_any = !batch.released_slots.empty();
           batch.released_slots.clear();
           return had_any;
         }},
};

// The tokens would show few of these faults, so it is the watch that has to.
TEST_F(ServedRequests, AreWatched) {
  for (const Fault& fault : kFaults) {
    SCOPED_TRACE(fault.reported);
    bool planted = false;
    const ServedModel::Run run =
        model_->serve(speculating(2), requests(*model_), [&](scheduler::Batch& batch) {
          scheduler::Batch changed = batch;
          if (planted || !fault.plant(changed)) return;
          planted = true;
          batch = changed;
        });
    EXPECT_TRUE(planted);
    ASSERT_TRUE(run.violation);
    EXPECT_TRUE(run.violation->message.contains(fault.reported)) << run.violation->message;
    for (const auto& [id, answer] : run.answers) {
      const bool ended_before = answer.tokens == alone_->at(id).tokens;
      EXPECT_TRUE(ended_before || answer.report.error == run.violation->message) << id;
    }
  }
}

}  // namespace
}  // namespace ingot::parity
