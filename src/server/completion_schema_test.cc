#include "server/completion_schema.h"

#include <gtest/gtest.h>

namespace ingot::server {
namespace {

using Ids = std::vector<int32_t>;
using Prompts = std::vector<CompletionPrompt>;

std::string error_of(std::string_view body) {
  const auto request = parse_completion_request(body);
  return request ? "none" : request.error().param + ": " + request.error().message;
}

TEST(CompletionSchema, FormsOfAPrompt) {
  const auto prompts = [](std::string_view prompt) {
    return parse_completion_request(fmt::format(R"({{"prompt": {}}})", prompt)).value().prompts;
  };
  EXPECT_EQ(prompts(R"("text")"), Prompts{"text"});
  EXPECT_EQ(prompts(R"(["one", "two"])"), (Prompts{"one", "two"}));
  EXPECT_EQ(prompts("[1, 2, 3]"), Prompts{(Ids{1, 2, 3})});
  EXPECT_EQ(prompts("[[1, 2], [3]]"), (Prompts{Ids{1, 2}, Ids{3}}));
  EXPECT_EQ(prompts(R"([[1, 2], "two"])"), (Prompts{Ids{1, 2}, "two"}));
}

TEST(CompletionSchema, PromptsThatAreNone) {
  EXPECT_EQ(error_of("{}"), "prompt: prompt is missing");
  const auto error = [](std::string_view prompt) {
    return error_of(fmt::format(R"({{"prompt": {}}})", prompt));
  };
  EXPECT_EQ(error("[]"), "prompt: prompt is empty");
  for (const char* empty : {R"("")", R"(["a", ""])", "[[]]", "[[1], []]"}) {
    EXPECT_EQ(error(empty), "prompt: a prompt is empty; there is nothing to continue") << empty;
  }
  const std::string forms =
      "prompt must be a string, an array of token ids, or an array of strings or of such arrays";
  EXPECT_EQ(error("5"), "prompt: " + forms);
  EXPECT_EQ(error(R"(["a", 5])"), "prompt: " + forms);
  EXPECT_EQ(error(R"([5, "a"])"), "prompt: prompt has \"a\" among its token ids; " + forms);
  EXPECT_EQ(error("[5, -1]"), "prompt: prompt has -1 among its token ids; " + forms);
  EXPECT_EQ(error("[[1.5]]"), "prompt: prompt has 1.5 among its token ids; " + forms);
  EXPECT_EQ(error("[4294967296]"), "prompt: prompt has 4294967296 among its token ids; " + forms);
}

TEST(CompletionSchema, FieldsOfItsOwn) {
  const auto request = parse_completion_request(
      R"({"prompt": "p", "echo": true, "logprobs": 3, "max_tokens": 0, "n": 2, "best_of": 2,
          "suffix": "", "temperature": 2})");
  ASSERT_TRUE(request.has_value()) << request.error().message;
  EXPECT_TRUE(request->echo);
  EXPECT_EQ(request->answer.top_logprobs, 3);
  EXPECT_EQ(request->answer.max_tokens, 0);
  EXPECT_EQ(request->answer.temperature, 2);
  EXPECT_EQ(parse_completion_request(R"({"prompt": "p"})").value().answer.max_tokens,
            kCompletionMaxTokensDefault);
  EXPECT_EQ(error_of(R"({"prompt": "p", "logprobs": true})"),
            "logprobs: logprobs is true; it must be a whole number from 0 to 20");
  EXPECT_TRUE(error_of(R"({"prompt": "p", "best_of": 2})").starts_with("best_of: "));
  EXPECT_TRUE(error_of(R"({"prompt": "p", "suffix": "x"})").starts_with("suffix: "));
  for (const char* field : {"messages", "tools", "top_logprobs", "max_completion_tokens",
                            "reasoning_effort", "chat_template_kwargs"}) {
    EXPECT_TRUE(error_of(fmt::format(R"({{"prompt": "p", "{}": 1}})", field)).starts_with(field));
  }
}

TEST(CompletionSchema, AnswersOfOneRequestAreBounded) {
  std::string prompts = R"({"n": 128, "prompt": ["p")";
  for (int i = 1; i < 16; ++i) prompts += R"(, "p")";
  EXPECT_EQ(error_of(prompts + "]}"), "none");
  EXPECT_EQ(error_of(prompts + R"(, "p"]})"),
            "prompt: 17 prompts with 128 answers each; a request can have 2048 answers in all");
}

}  // namespace
}  // namespace ingot::server
