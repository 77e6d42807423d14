#include "server/chat_schema.h"

#include <gtest/gtest.h>

namespace ingot::server {
namespace {

// A body with one message and further fields.
std::string body_with(std::string_view fields) {
  return fmt::format(R"({{"messages": [{{"role": "user", "content": "hi"}}]{}{}}})",
                     fields.empty() ? "" : ", ", fields);
}

ChatRequest parse(std::string_view fields) {
  auto request = parse_chat_request(body_with(fields));
  EXPECT_TRUE(request.has_value()) << fields << ": " << request.error().message;
  return request.value_or(ChatRequest{});
}

// "param: message" of an error that status 400 goes with.
std::string error_of(std::string_view body) {
  const auto request = parse_chat_request(body);
  if (request) return "none";
  EXPECT_EQ(request.error().status, 400);
  EXPECT_EQ(request.error().type, "invalid_request_error");
  return request.error().param + ": " + request.error().message;
}

std::string error_with(std::string_view fields) { return error_of(body_with(fields)); }

TEST(ChatSchema, EveryFieldReachesItsPlace) {
  const ChatRequest request = parse(R"("model": "glm", "temperature": 0.5, "top_p": 0.9,
      "top_k": 40, "min_p": 0.1, "repetition_penalty": 1.1, "presence_penalty": -1,
      "frequency_penalty": 0.25, "logit_bias": {"5": 10, "17": -1.5}, "seed": 12,
      "max_completion_tokens": 30, "min_tokens": 3, "ignore_eos": true, "stop": ["a", "bc"],
      "stop_token_ids": [9, 8], "n": 4, "logprobs": true, "top_logprobs": 5,
      "prompt_logprobs": 2, "priority": -3, "cache_salt": "mine", "reasoning_effort": "high",
      "chat_template_kwargs": {"enable_thinking": false}, "add_generation_prompt": false,
      "documents": [{"text": "d"}], "tool_choice": "auto", "tools": [{"type": "function",
      "function": {"name": "find", "parameters": {"properties": {"q": {"type": "string"}}}}}])");
  const AnswerFields& answer = request.answer;
  EXPECT_EQ(answer.model, "glm");
  EXPECT_EQ(answer.temperature, 0.5);
  EXPECT_EQ(answer.top_p, 0.9);
  EXPECT_EQ(answer.top_k, 40);
  EXPECT_EQ(answer.min_p, 0.1);
  EXPECT_EQ(answer.repetition_penalty, 1.1);
  EXPECT_EQ(answer.presence_penalty, -1);
  EXPECT_EQ(answer.frequency_penalty, 0.25);
  ASSERT_EQ(answer.logit_bias.size(), 2u);
  EXPECT_EQ(answer.logit_bias[1].id, 17);
  EXPECT_EQ(answer.logit_bias[1].bias, -1.5);
  EXPECT_EQ(answer.seed, 12u);
  EXPECT_EQ(answer.max_tokens, 30);
  EXPECT_EQ(answer.min_tokens, 3);
  EXPECT_TRUE(answer.ignore_eos);
  EXPECT_EQ(answer.stop, (std::vector<std::string>{"a", "bc"}));
  EXPECT_EQ(answer.stop_token_ids, (std::vector<int32_t>{9, 8}));
  EXPECT_EQ(answer.n, 4);
  EXPECT_EQ(answer.top_logprobs, 5);
  EXPECT_EQ(answer.prompt_logprobs, 2);
  EXPECT_EQ(answer.priority, -3);
  EXPECT_EQ(answer.cache_salt, "mine");
  EXPECT_EQ(request.reasoning_effort, "high");
  EXPECT_FALSE(request.inputs.add_generation_prompt);
  ASSERT_EQ(request.inputs.extra.size(), 1u);
  EXPECT_EQ(request.inputs.extra[0].first, "enable_thinking");
  EXPECT_FALSE(request.inputs.documents.is_none());
  EXPECT_FALSE(request.inputs.tools.is_none());
  ASSERT_EQ(request.tools.size(), 1u);
  EXPECT_EQ(request.tools[0].name, "find");
  ASSERT_NE(request.inputs.messages.as_sequence(), nullptr);
}

TEST(ChatSchema, NothingIsMadeUp) {
  const ChatRequest request = parse("");
  EXPECT_FALSE(request.answer.temperature || request.answer.top_p || request.answer.seed ||
               request.answer.max_tokens || request.answer.top_logprobs);
  EXPECT_EQ(request.answer.n, 1);
  EXPECT_TRUE(request.inputs.add_generation_prompt);
  EXPECT_TRUE(request.inputs.tools.is_none());
}

TEST(ChatSchema, WhatAsksForNothingPasses) {
  for (const char* fields :
       {R"("temperature": null, "stop": null, "logprobs": null, "tools": null, "foo": null)",
        R"("response_format": {"type": "text"}, "n": 1, "stream": false)",
        R"("parallel_tool_calls": true, "service_tier": "auto", "store": false)",
        R"("user": "u", "metadata": {"a": "b"}, "logit_bias": {}, "stop": [], "tools": [])",
        R"("modalities": ["text"], "logprobs": false, "top_logprobs": 0, "top_k": -1)",
        R"("stream": true, "stream_options": {"include_usage": true}, "max_tokens": 16.0)",
        R"("max_tokens": 5, "max_completion_tokens": 5, "tool_choice": "none")",
        R"("seed": -1, "stop": "one")", R"("seed": 18446744073709551615)"}) {
    EXPECT_EQ(error_with(fields), "none") << fields;
  }
  EXPECT_EQ(parse(R"("seed": -1)").answer.seed, UINT64_MAX);
  EXPECT_EQ(parse(R"("seed": 18446744073709551615)").answer.seed, UINT64_MAX);
  EXPECT_EQ(parse(R"("top_k": -1)").answer.top_k, 0);
  EXPECT_TRUE(
      parse(R"("stream": true, "stream_options": {"include_usage": true})").answer.include_usage);
}

TEST(ChatSchema, AnUnknownFieldIsNamed) {
  EXPECT_EQ(error_with(R"("temprature": 1)"),
            "temprature: temprature is not supported here; leave it out");
  EXPECT_EQ(error_with(R"("response_format": {"type": "json_object"})"),
            "response_format: response_format is not supported here but for "
            "{\"type\":\"text\"}; leave it out");
  for (const char* field : {"functions", "prediction", "audio", "best_of", "prompt", "min_n"}) {
    EXPECT_TRUE(error_with(fmt::format(R"("{}": 3)", field)).starts_with(field)) << field;
  }
  const auto error = parse_chat_request(body_with(R"("x": 1)")).error();
  EXPECT_EQ(error.code, "unsupported_parameter");
}

TEST(ChatSchema, WrongTypesAndRangesAreNamed) {
  const struct {
    const char* fields;
    const char* error;
  } cases[] = {
      {R"("temperature": "hot")", "temperature: temperature is \"hot\"; it must be a number"},
      {R"("n": 0)", "n: n is 0; it must be a whole number from 1 to 128"},
      {R"("n": 129)", "n: n is 129; it must be a whole number from 1 to 128"},
      {R"("n": 1.5)", "n: n is 1.5; it must be a whole number from 1 to 128"},
      {R"("max_tokens": 0)",
       "max_tokens: max_tokens is 0; it must be a whole number from 1 to "
       "2147483647"},
      {R"("max_tokens": 1e300)",
       "max_tokens: max_tokens is 1e+300; it must be a whole number "
       "from 1 to 2147483647"},
      {R"("max_tokens": 5, "max_completion_tokens": 6)",
       "max_tokens: max_tokens is 5 and max_completion_tokens 6; give one of them"},
      {R"("stream": 1)", "stream: stream is 1; it must be true or false"},
      {R"("stream_options": {"include_usage": true})",
       "stream_options: stream_options must be an object, and only with \"stream\": true"},
      {R"("stream": true, "stream_options": {"x": 1})",
       "stream_options.x: stream_options.x is not supported here; leave it out"},
      {R"("top_logprobs": 5)", "top_logprobs: top_logprobs needs \"logprobs\": true"},
      {R"("logprobs": 5)", "logprobs: logprobs is 5; it must be true or false"},
      {R"("logprobs": true, "top_logprobs": 21)",
       "top_logprobs: top_logprobs is 21; it must be a whole number from 0 to 20"},
      {R"("stop": "")",
       "stop: stop must be a string or an array of strings, each of 1 to 1024 "
       "bytes; one is \"\""},
      {R"("stop": ["a", 5])",
       "stop: stop must be a string or an array of strings, each of 1 to "
       "1024 bytes; one is 5"},
      {R"("logit_bias": {"x": 1})",
       "logit_bias: logit_bias has the key \"x\"; keys must be "
       "token ids"},
      {R"("logit_bias": {"1": "1"})",
       "logit_bias: logit_bias of token 1 is \"1\"; it must be a number"},
      {R"("logit_bias": {"99999999999": 1})",
       "logit_bias: logit_bias has the key \"99999999999\"; keys must be token ids"},
      {R"("stop_token_ids": [1, -1])",
       "stop_token_ids: stop_token_ids[1] is -1; it must be a token id"},
      {R"("seed": 0.5)", "seed: seed is 0.5; it must be a whole number of 64 bits"},
      {R"("reasoning_effort": "hihg")",
       "reasoning_effort: reasoning_effort is \"hihg\"; it must be one of none, minimal, low, "
       "medium, high, xhigh, max"},
      {R"("tool_choice": "required")",
       "tool_choice: tool_choice is \"required\"; only \"auto\" and \"none\" are supported here"},
      {R"("chat_template_kwargs": {"messages": []})",
       "chat_template_kwargs: messages stands beside chat_template_kwargs, not in it"},
      {R"("tools": [{"name": "f"}])",
       "tools[0]: tools[0] must be {\"type\": \"function\", \"function\": {...}}"},
      {R"("tools": [{"type": "function", "function": {"name": "f", "strict": true}}])",
       "tools[0].function.strict: tools[0].function.strict: arguments are not held to their "
       "schema here; leave it out"},
      {R"("stream": true, "prompt_logprobs": 1)",
       "prompt_logprobs: prompt_logprobs cannot be streamed; leave out one of the two"},
  };
  for (const auto& test : cases) EXPECT_EQ(error_with(test.fields), test.error) << test.fields;
  std::string many = R"("stop": ["0")";
  for (int i = 1; i < 17; ++i) many += ", \"s\"";
  EXPECT_EQ(error_with(many + "]"), "stop: stop has 17 strings; it may have at most 16");
}

TEST(ChatSchema, MessagesThatNoTemplateWouldRead) {
  const auto error = [](std::string_view messages) {
    return error_of(fmt::format(R"({{"messages": {}}})", messages));
  };
  EXPECT_EQ(error("[]"), "messages: messages must be an array with at least one message");
  EXPECT_EQ(error_of("{}"), "messages: messages must be an array with at least one message");
  EXPECT_EQ(error(R"([{"content": "x"}])"),
            "messages[0]: messages[0] must be an object with a role and a content");
  EXPECT_EQ(error(R"([{"role": "user", "content": 5}])"),
            "messages[0].content: messages[0].content is 5; it must be a string or an array of "
            "parts");
  EXPECT_EQ(error(R"([{"role": "user", "content": [{"type": "text", "text": "x"},
                                                   {"type": "image_url", "image_url": {}}]}])"),
            "messages[0].content[1]: messages[0].content[1] is of type \"image_url\"; this model "
            "reads text alone");
  EXPECT_EQ(error(R"([{"role": "assistant", "content": null, "function_call": {"name": "f"}}])"),
            "messages[0].function_call: messages[0].function_call is not supported here; leave it "
            "out");
  EXPECT_EQ(error(R"([{"role": "assistant", "refusal": null, "content": [{"type": "text",
                      "text": "x"}], "tool_calls": []}])"),
            "none");
  EXPECT_TRUE(error(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f",
                        "arguments": "[1"}}]}])")
                  .starts_with("messages: messages[0].tool_calls[0].function.arguments"));
}

TEST(ChatSchema, ToolsThatMayNotBeCalledAreNotThere) {
  const ChatRequest request =
      parse(R"("tool_choice": "none", "tools": [{"type": "function", "function": {"name": "f"}}])");
  EXPECT_TRUE(request.inputs.tools.is_none());
  EXPECT_TRUE(request.tools.empty());
}

TEST(ChatSchema, TextThatIsNoRequest) {
  EXPECT_EQ(error_of("[1]"), ": the request is an array; it must be an object");
  EXPECT_EQ(error_of("{"), ": request: line 1, column 2: not valid JSON: incomplete JSON");
  EXPECT_TRUE(error_with(R"("n": 1, "n": 2)").contains("key \"n\" appears twice"));
  EXPECT_TRUE(error_with(R"("temperature": 1e999)").contains("not valid JSON"));
  EXPECT_TRUE(error_with("\"user\": \"\xff\"").contains("not valid JSON"));
  EXPECT_TRUE(error_with("\"metadata\": " + std::string(100, '[')).contains("too deep"));
  // What an error shows of it is short and whole characters.
  std::string long_name = "x";
  while (long_name.size() < 1000) long_name += "é";
  const auto error = parse_chat_request(body_with("\"" + long_name + "\": 1")).error();
  EXPECT_EQ(error.param, long_name.substr(0, 63) + "...");
}

}  // namespace
}  // namespace ingot::server
