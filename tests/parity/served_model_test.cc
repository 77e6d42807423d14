// What a request answers depends on the request alone, bit for bit: not on company, chunks, cached
// prefixes, preemption, threads, or what was drafted. On the bundled model, whose drafts are
// mostly right, under the real scheduler and executor.

#include <functional>

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

// The tests above would not see most of these in the tokens, so it is the watch that has to.
TEST_F(ServedRequests, AreWatched) {
  struct Fault {
    const char* reported;
    std::function<bool(scheduler::Batch::Sequence& entry)> plant;  // false: not here
  };
  const auto starts_cached = [](const scheduler::Batch::Sequence& entry) {
    return entry.num_read_only_tokens > 0;
  };
  const std::vector<Fault> faults = {
      {.reported = "which holds another prefix",
       .plant =
           [&](auto& entry) {
             // A page of the other prompts, in the middle of a prefix that it found.
             if (!starts_cached(entry) || entry.new_pages.size() < 2) return false;
             std::swap(entry.new_pages.front(), entry.new_pages.back());
             return true;
           }},
      {.reported = "which others read",
       .plant =
           [&](auto& entry) {
             if (!starts_cached(entry)) return false;
             entry.first_position = 0, entry.num_read_only_tokens = 0;
             return true;
           }},
      {.reported = "where its slot stands at",
       .plant =
           [](auto& entry) {
             if (!entry.draws || entry.tokens.size() != 1) return false;
             --entry.first_position;
             return true;
           }},
      {.reported = "the last one's hidden state is missing",
       .plant =
           [&](auto& entry) {
             if (!starts_cached(entry)) return false;
             entry.num_read_only_tokens = 0, ++entry.first_position;
             entry.tokens.erase(entry.tokens.begin());
             for (int32_t& row : entry.logit_rows) --row;
             return true;
           }},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.reported);
    int num_planted = 0;
    const ServedModel::Tamper tamper = [&](scheduler::Batch& batch) {
      for (auto& entry : batch.sequences) {
        if (num_planted == 0 && fault.plant(entry)) ++num_planted;
      }
    };
    const ServedModel::Run run = model_->serve(speculating(2), requests(*model_), tamper);
    EXPECT_EQ(num_planted, 1);
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
