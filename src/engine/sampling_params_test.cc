#include "engine/sampling_params.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

namespace ingot::engine {
namespace {

constexpr int64_t kVocabSize = 100;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string error_of(const SamplingParams& params) {
  const base::Status status = check(params, kVocabSize);
  return status ? "none" : status.error().message;
}

TEST(SamplingParams, DefaultsAndBothEndsOfEachRangePass) {
  EXPECT_EQ(error_of({}), "none");
  EXPECT_EQ(error_of({.temperature = 100,
                      .top_k = std::numeric_limits<int32_t>::max(),
                      .top_p = 1,
                      .min_p = 1,
                      .repetition_penalty = 100,
                      .presence_penalty = 2,
                      .frequency_penalty = 2,
                      .logit_bias = {{0, 100}, {99, -100}},
                      .num_top_logprobs = 20}),
            "none");
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(error_of({.temperature = kLeast,
                      .top_k = 0,
                      .top_p = kLeast,
                      .min_p = 0,
                      .repetition_penalty = kLeast,
                      .presence_penalty = -2,
                      .frequency_penalty = -2,
                      .num_top_logprobs = 0}),
            "none");
}

TEST(SamplingParams, AnErrorNamesTheFieldItsValueAndItsRange) {
  EXPECT_EQ(error_of({.temperature = -0.5}),
            "temperature is -0.5; it must be at least 0 and at most 100");
  EXPECT_EQ(error_of({.top_k = -1}), "top_k is -1; it must be at least 0, and 0 keeps all tokens");
  EXPECT_EQ(error_of({.top_p = 0}), "top_p is 0; it must be above 0 and at most 1");
  EXPECT_EQ(error_of({.min_p = 1.25}), "min_p is 1.25; it must be at least 0 and at most 1");
  EXPECT_EQ(error_of({.repetition_penalty = 0}),
            "repetition_penalty is 0; it must be above 0 and at most 100");
  EXPECT_EQ(error_of({.presence_penalty = 2.5}),
            "presence_penalty is 2.5; it must be at least -2 and at most 2");
  EXPECT_EQ(error_of({.frequency_penalty = -3}),
            "frequency_penalty is -3; it must be at least -2 and at most 2");
  EXPECT_EQ(error_of({.logit_bias = {{3, 1}, {100, 1}}}),
            "logit_bias names token 100; ids are from 0 to 99");
  EXPECT_EQ(error_of({.logit_bias = {{-1, 1}}}), "logit_bias names token -1; ids are from 0 to 99");
  EXPECT_EQ(error_of({.logit_bias = {{7, -101}}}),
            "logit_bias of token 7 is -101; it must be at least -100 and at most 100");
  EXPECT_EQ(error_of({.logit_bias = {{7, 1}, {3, 2}, {7, 1}}}),
            "logit_bias names token 7 twice; give each id once");
  EXPECT_EQ(error_of({.num_top_logprobs = 21}),
            "num_top_logprobs is 21; it must be at least 0 and at most 20");
}

TEST(SamplingParams, NanAndInfinityAreInNoRange) {
  for (const double value : {kNan, kInfinity, -kInfinity}) {
    EXPECT_NE(error_of({.temperature = value}), "none") << value;
    EXPECT_NE(error_of({.top_p = value}), "none") << value;
    EXPECT_NE(error_of({.min_p = value}), "none") << value;
    EXPECT_NE(error_of({.repetition_penalty = value}), "none") << value;
    EXPECT_NE(error_of({.presence_penalty = value}), "none") << value;
    EXPECT_NE(error_of({.frequency_penalty = value}), "none") << value;
    EXPECT_NE(error_of({.logit_bias = {{0, value}}}), "none") << value;
  }
}

TEST(SamplingParams, PenaltiesAloneUseTheHistory) {
  EXPECT_FALSE(uses_history({.temperature = 2,
                             .top_k = 3,
                             .top_p = 0.5,
                             .min_p = 0.5,
                             .logit_bias = {{1, 1}},
                             .num_top_logprobs = 2}));
  EXPECT_TRUE(uses_history({.repetition_penalty = 0.5}));
  EXPECT_TRUE(uses_history({.presence_penalty = -1}));
  EXPECT_TRUE(uses_history({.frequency_penalty = 1}));
}

}  // namespace
}  // namespace ingot::engine
