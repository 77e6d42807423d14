#include "soak/answer.h"

#include <functional>
#include <string>

#include <gtest/gtest.h>

#include "soak/plan_pool.h"

namespace ingot::soak {
namespace {

using scheduler::FinishReason;

engine::EngineRequest request() {
  return {.prompt = {1, 2, 3},
          .max_tokens = 4,
          .sampling = {.num_top_logprobs = 1},
          .wants_prompt_logprobs = true};
}

engine::TokenLogprobs logprobs_of(int32_t id) {
  return {.token = {.id = id, .logprob = -0.5 - id}, .top = {{.id = 9, .logprob = -0.25}}};
}

// What answers it whole.
Answer answer() {
  Answer answer;
  for (const int32_t id : {7, 8, 7}) {
    answer.tokens.push_back(id);
    answer.logprobs.push_back(logprobs_of(id));
  }
  answer.prompt_logprobs = {logprobs_of(2), logprobs_of(3)};
  answer.report = {
      .reason = FinishReason::kStop,
      .stopped_by_id = 5,
      .usage = {.num_prompt_tokens = 3, .num_prefill_tokens = 3, .num_output_tokens = 3}};
  return answer;
}

// The same, cancelled after a token.
Answer beginning() {
  Answer begun = answer();
  begun.tokens.resize(1);
  begun.logprobs.resize(1);
  begun.report.reason = FinishReason::kCancelled;
  begun.report.stopped_by_id.reset();
  begun.report.usage.num_output_tokens = 1;
  return begun;
}

struct Change {
  std::function<void(Answer&)> make;
  const char* reported;
};

TEST(Answer, EveryFaultInItselfIsFound) {
  EXPECT_EQ(fault_of(answer(), request()), "");
  EXPECT_EQ(fault_of(beginning(), request()), "");
  const Change changes[] = {
      {[](Answer& a) { a.tokens.pop_back(); }, "its usage has 3 + 3 tokens, and it has 3 + 2"},
      {[](Answer& a) { --a.report.usage.num_prefill_tokens; },
       "0 tokens of its prompt were cached and 2 computed, of 3"},
      {[](Answer& a) {
         a.report.usage.num_cached_tokens = 1;
         a.report.usage.num_prefill_tokens = 2;
       },
       "it wants all logprobs of its prompt, and found some of it in the cache"},
      {[](Answer& a) { a.logprobs.pop_back(); }, "3 tokens have 2 logprobs"},
      {[](Answer& a) { a.logprobs[1].token.id = 7; }, "a logprob is another token's"},
      {[](Answer& a) { a.prompt_logprobs.pop_back(); },
       "1 logprobs of its prompt of 3 tokens were told"},
      {[](Answer& a) { a.prompt_logprobs[0].token.id = 1; },
       "a logprob of its prompt is another token's"},
  };
  for (const Change& change : changes) {
    Answer changed = answer();
    change.make(changed);
    EXPECT_EQ(fault_of(changed, request()), change.reported);
  }
  engine::EngineRequest shorter = request();
  shorter.max_tokens = 2;
  EXPECT_EQ(fault_of(answer(), shorter), "it has more than max_tokens");
  engine::EngineRequest longer = request();
  longer.min_tokens = 4;
  EXPECT_EQ(fault_of(answer(), longer), "it stopped before min_tokens");
}

TEST(Answer, EveryDifferenceIsFound) {
  EXPECT_EQ(difference(answer(), answer()), "");
  EXPECT_EQ(difference(beginning(), answer()), "");
  const Change changes[] = {
      {[](Answer& a) { a.tokens[2] = 6; }, "number 2 of the tokens is another"},
      {[](Answer& a) { a.tokens.pop_back(); }, "2 tokens where there should be 3"},
      {[](Answer& a) { a.logprobs[1].token.logprob += 1e-15; },
       "number 1 of the logprobs is another"},
      {[](Answer& a) { a.logprobs[0].top[0].id = 8; }, "number 0 of the logprobs is another"},
      {[](Answer& a) { a.prompt_logprobs[1].top.clear(); },
       "number 1 of the prompt's logprobs is another"},
      {[](Answer& a) { a.report.stopped_by_id = 6; },
       "it ended as stop where it should as stop, or at something else"},
  };
  for (const Change& change : changes) {
    Answer changed = answer();
    change.make(changed);
    EXPECT_EQ(difference(changed, answer()), change.reported);
  }
  Answer begun = beginning();
  begun.tokens[0] = 8;
  EXPECT_EQ(difference(begun, answer()), "number 0 of the tokens is another");
}

TEST(PlanPool, HoldsEveryAnswerAgainstTheFirstWholeOne) {
  PlanPool plans;
  plans.add(request());
  Answer other = answer();
  other.tokens[0] = 6;
  other.logprobs[0].token.id = 6;
  EXPECT_TRUE(plans.check(0, beginning())) << "and keeps no part of one";
  EXPECT_TRUE(plans.check(0, answer()));
  EXPECT_EQ(plans.num_confirmed(), 0);
  EXPECT_TRUE(plans.check(0, answer()));
  EXPECT_EQ(plans.num_confirmed(), 1);
  EXPECT_EQ(plans.check(0, other).error().message, "plan 0: number 0 of the tokens is another");
}

}  // namespace
}  // namespace ingot::soak
