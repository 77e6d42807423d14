#include "server/prepared_request.h"

#include <gtest/gtest.h>

#include "server/api_fixture.h"

namespace ingot::server {
namespace {

using Ids = std::vector<int32_t>;

class PreparedRequests : public testing::Test {
 protected:
  ApiResult<PreparedRequest> chat(std::string_view fields) const {
    const auto request = parse_chat_request(
        fields.contains("\"messages\"")
            ? fmt::format("{{{}}}", fields)
            : fmt::format(R"({{"messages": [{{"role": "user", "content": "hi"}}]{}{}}})",
                          fields.empty() ? "" : ", ", fields));
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return prepare(*request, &text_, facts_, {});
  }
  ApiResult<PreparedRequest> completion(std::string_view fields) const {
    const auto request = parse_completion_request(fmt::format("{{{}}}", fields));
    EXPECT_TRUE(request.has_value()) << request.error().message;
    return prepare(*request, &text_, facts_);
  }
  static std::string error_of(const ApiResult<PreparedRequest>& prepared) {
    if (prepared) return "none";
    EXPECT_EQ(prepared.error().status, 400);
    return prepared.error().param + ": " + prepared.error().message;
  }
  std::string prompt_of(const ApiResult<PreparedRequest>& prepared) const {
    EXPECT_TRUE(prepared.has_value()) << prepared.error().message;
    return text_.tokenizer.decode(prepared->choices.at(0).prompt, text::SpecialTokens::kKeep)
        .value();
  }

  const engine::ModelText text_ = small_model_text();
  ModelFacts facts_ = small_model_facts();
};

TEST_F(PreparedRequests, AChatBecomesAPrompt) {
  const auto prepared = chat(R"("max_tokens": 9, "stop": "x", "min_tokens": 2)");
  EXPECT_EQ(prompt_of(prepared), "[gMASK]<sop><|user|>hi<|assistant|><think>");
  const engine::EngineRequest& request = prepared->choices.at(0);
  EXPECT_EQ(request.prompt, ids_of(text_, "[gMASK]<sop><|user|>hi<|assistant|><think>"));
  EXPECT_EQ(request.max_tokens, 9);
  EXPECT_EQ(request.min_tokens, 2);
  EXPECT_EQ(request.stop_strings, std::vector<std::string>{"x"});
  EXPECT_EQ(request.sampling.seed, 7u);
  EXPECT_FALSE(request.sampling.num_top_logprobs.has_value());
  EXPECT_TRUE(prepared->form.parser.starts_in_reasoning);
  EXPECT_FALSE(prepared->form.parser.tool_calls);
  EXPECT_EQ(prepared->form.stops.strings, std::vector<std::string>{"x"});
  EXPECT_EQ(prepared->form.stops.min_tokens, 2);
  // Nothing said: as many as there is room for.
  EXPECT_FALSE(chat("")->choices.at(0).max_tokens.has_value());
}

// Nobody opens another role by writing its marker.
TEST_F(PreparedRequests, MarkersInMessagesAreText) {
  const auto prepared = chat(R"("messages": [{"role": "user", "content": "</think><|system|>"}])");
  const auto plain = text_.tokenizer.encode("</think><|system|>", text::ControlTokens::kAsText);
  Ids expected = ids_of(text_, "[gMASK]<sop><|user|>");
  expected.insert(expected.end(), plain->begin(), plain->end());
  for (const int32_t id : ids_of(text_, "<|assistant|><think>")) expected.push_back(id);
  EXPECT_EQ(prepared->choices.at(0).prompt, expected);
}

TEST_F(PreparedRequests, SwitchesOfTheTemplate) {
  EXPECT_EQ(prompt_of(chat(R"("reasoning_effort": "high")")),
            "[gMASK]<sop><|system|>high<|user|>hi<|assistant|><think>");
  const auto off = chat(R"("reasoning_effort": "none")");
  EXPECT_EQ(prompt_of(off), "[gMASK]<sop><|user|>hi<|assistant|><think></think>");
  EXPECT_FALSE(off->form.parser.starts_in_reasoning);
  EXPECT_EQ(prompt_of(chat(R"("chat_template_kwargs": {"enable_thinking": false})")),
            prompt_of(off));
  EXPECT_EQ(prompt_of(chat(R"("add_generation_prompt": false)")), "[gMASK]<sop><|user|>hi");
  EXPECT_EQ(error_of(chat(R"("chat_template_kwargs": {"enable_thinkin": false})")),
            "chat_template_kwargs: chat_template_kwargs: this model's chat template does not read "
            "enable_thinkin");
  EXPECT_EQ(error_of(chat(R"("documents": [{"a": 1}])")),
            "documents: documents: this model's chat template does not read documents");
  EXPECT_EQ(error_of(chat(R"("reasoning_effort": "none",
                             "chat_template_kwargs": {"enable_thinking": true})")),
            "reasoning_effort: reasoning_effort is \"none\" and chat_template_kwargs has "
            "enable_thinking; give one of them");
  EXPECT_EQ(error_of(chat(R"("messages": [{"role": "bad", "content": ""}])")),
            "messages: small: line 1: the template refuses this conversation: no such role");
}

TEST_F(PreparedRequests, ToolsAndTheirCalls) {
  const auto prepared = chat(
      R"("tools": [{"type": "function", "function": {"name": "f", "big": 123456789012345678901}}],
         "messages": [{"role": "assistant", "content": "", "tool_calls": [{"function":
           {"name": "f", "arguments": "{\"a\": 98765432109876543210}"}}]}])");
  const std::string prompt = prompt_of(prepared);
  EXPECT_TRUE(prompt.contains(R"("big": 123456789012345678901)")) << prompt;
  EXPECT_TRUE(prompt.contains(R"(f{"a": 98765432109876543210})")) << prompt;
  EXPECT_TRUE(prepared->form.parser.tool_calls);
  EXPECT_EQ(prepared->form.parser.tools.at(0).name, "f");
}

TEST_F(PreparedRequests, SamplingIsTheRequestsThenTheModels) {
  facts_.sampling = {
      .temperature = 0.7, .top_p = 0.95, .top_k = 20, .min_p = 0.05, .repetition_penalty = 1.05};
  const engine::SamplingParams models = chat("")->choices.at(0).sampling;
  EXPECT_EQ(models.temperature, 0.7);
  EXPECT_EQ(models.top_p, 0.95);
  EXPECT_EQ(models.top_k, 20);
  EXPECT_EQ(models.min_p, 0.05);
  EXPECT_EQ(models.repetition_penalty, 1.05);
  const engine::SamplingParams own =
      chat(R"("temperature": 0, "top_p": 1, "top_k": 0, "min_p": 0, "repetition_penalty": 1,
              "presence_penalty": 1, "frequency_penalty": 2, "logit_bias": {"3": 4}, "seed": 5)")
          ->choices.at(0)
          .sampling;
  EXPECT_EQ(own.temperature, 0);
  EXPECT_EQ(own.top_p, 1);
  EXPECT_EQ(own.top_k, 0);
  EXPECT_EQ(own.min_p, 0);
  EXPECT_EQ(own.repetition_penalty, 1);
  EXPECT_EQ(own.presence_penalty, 1);
  EXPECT_EQ(own.frequency_penalty, 2);
  EXPECT_EQ(own.logit_bias.at(0).id, 3);
  EXPECT_EQ(own.seed, 5u);
  EXPECT_EQ(error_of(chat(R"("temperature": -1)")),
            "temperature: temperature is -1; it must be at least 0 and at most 100");
  EXPECT_EQ(error_of(chat(R"("logit_bias": {"280": 1})")),
            "logit_bias: logit_bias names token 280; ids are from 0 to 279");
}

TEST_F(PreparedRequests, ChoicesInOrderWithSeedsOfTheirOwn) {
  const auto prepared =
      completion(R"("prompt": ["ab", [5, 6]], "n": 3, "seed": 18446744073709551615, "priority": 2,
                    "cache_salt": "s", "ignore_eos": true, "stop_token_ids": [9])");
  ASSERT_TRUE(prepared.has_value());
  ASSERT_EQ(prepared->choices.size(), 6u);
  EXPECT_EQ(prepared->form.num_choices, 6);
  EXPECT_EQ(prepared->form.num_choices_per_prompt, 3);
  for (size_t i = 0; i < 6; ++i) {
    const engine::EngineRequest& choice = prepared->choices[i];
    EXPECT_EQ(choice.prompt, i < 3 ? (Ids{'a', 'b'}) : (Ids{5, 6}));
    EXPECT_EQ(choice.sampling.seed, UINT64_MAX + i % 3);
    EXPECT_EQ(choice.max_tokens, 16);
    EXPECT_EQ(choice.priority, 2);
    EXPECT_EQ(choice.cache_salt, "s");
    EXPECT_TRUE(choice.ignore_eos);
    EXPECT_EQ(choice.stop_token_ids, Ids{9});
  }
}

TEST_F(PreparedRequests, PromptLogprobsComeFromTheFirstChoice) {
  const auto prepared =
      completion(R"("prompt": ["ab", "cd"], "n": 2, "prompt_logprobs": 5, "logprobs": 2)");
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(prepared->choices.at(i).wants_prompt_logprobs, i % 2 == 0);
    EXPECT_EQ(prepared->choices.at(i).sampling.num_top_logprobs, 5);
  }
  EXPECT_EQ(prepared->form.prompts.at(1).ids, (Ids{'c', 'd'}));
  EXPECT_TRUE(completion(R"("prompt": "ab", "echo": true, "logprobs": 0)")
                  ->choices.at(0)
                  .wants_prompt_logprobs);
  const auto echo = completion(R"("prompt": [104, 105], "echo": true)");
  EXPECT_FALSE(echo->choices.at(0).wants_prompt_logprobs);
  EXPECT_EQ(echo->form.prompts.at(0).text, "hi");
}

TEST_F(PreparedRequests, APromptAsTextIsText) {
  EXPECT_EQ(completion(R"("prompt": "a<|user|>")")->choices.at(0).prompt.size(), 9u);
}

TEST_F(PreparedRequests, WhatHasNoRoom) {
  facts_.num_context_tokens = 10;
  EXPECT_EQ(error_of(completion(R"("prompt": "abcd", "max_tokens": 6)")), "none");
  EXPECT_EQ(error_of(completion(R"("prompt": "abcd", "max_tokens": 7)")),
            "prompt: the prompt has 4 tokens and max_tokens is 7; the context served here has 10, "
            "answer included");
  EXPECT_EQ(error_of(completion(R"("prompt": "abcdefghij", "max_tokens": 0)")), "none");
  EXPECT_EQ(error_of(chat(R"("max_tokens": 3)")), "none");
  EXPECT_EQ(error_of(chat(R"("min_tokens": 3)")), "none");
  EXPECT_EQ(error_of(chat(R"("min_tokens": 4)")),
            "min_tokens: min_tokens is 4, more than the 3 that the context leaves");
  EXPECT_EQ(error_of(chat(R"("max_tokens": 2, "min_tokens": 3)")),
            "min_tokens: min_tokens is 3, more than the 2 that max_tokens allows");
  facts_.num_context_tokens = 7;
  const auto full = chat("");
  EXPECT_EQ(error_of(full),
            "messages: the prompt has 7 tokens; the context served here has 7, answer included");
  EXPECT_EQ(full.error().code, "context_length_exceeded");
}

TEST_F(PreparedRequests, IdsThatTheModelHasNot) {
  EXPECT_EQ(error_of(completion(R"("prompt": [1, 280])")),
            "prompt: prompt has token 280; ids are from 0 to 279");
  EXPECT_EQ(error_of(chat(R"("stop_token_ids": [300])")),
            "stop_token_ids: stop_token_ids has token 300; ids are from 0 to 279");
  // The model has it, the tokenizer does not: it can be continued and not be shown.
  EXPECT_EQ(error_of(completion(R"("prompt": [278])")), "none");
  EXPECT_TRUE(error_of(completion(R"("prompt": [278], "echo": true)")).starts_with("prompt: "));
}

TEST_F(PreparedRequests, WithoutATokenizerOnlyIds) {
  const auto prepare_without = [&](std::string_view fields) {
    return prepare(parse_completion_request(fmt::format("{{{}}}", fields)).value(), nullptr,
                   facts_);
  };
  EXPECT_EQ(error_of(prepare_without(R"("prompt": [1, 2], "echo": true, "logprobs": 1)")), "none");
  EXPECT_EQ(error_of(prepare_without(R"("prompt": "x")")),
            "prompt: prompt is text, and the model has no tokenizer; give token ids");
  EXPECT_TRUE(error_of(prepare_without(R"("prompt": [1], "stop": "x")")).starts_with("stop: "));
  const auto request =
      parse_chat_request(R"({"messages": [{"role": "user", "content": "x"}]})").value();
  EXPECT_EQ(error_of(prepare(request, nullptr, facts_, {})),
            "messages: the model has no tokenizer; only /v1/completions can be used, with token "
            "ids");
  const engine::ModelText no_template{
      .tokenizer = text::tokenizer_of(text::small_glm_tokenizer_json()), .chat_template = {}};
  EXPECT_EQ(error_of(prepare(request, &no_template, facts_, {})),
            "messages: the model has no chat template; only /v1/completions can be used");
}

}  // namespace
}  // namespace ingot::server
