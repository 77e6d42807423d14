#include "text/answer_reader.h"

#include <gtest/gtest.h>

#include "text/tokenizer_fixture.h"

namespace ingot::text {
namespace {

Tokenizer fixture() { return tokenizer_of(small_glm_tokenizer_json()); }

// "R:thought C:answer" of an answer that arrives token by token.
std::string read(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                 bool starts_in_reasoning) {
  AnswerReader reader(tokenizer, {.starts_in_reasoning = starts_in_reasoning});
  std::string reasoning;
  std::string content;
  const auto take = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      (event.kind == OutputEvent::Kind::kReasoning ? reasoning : content) += event.text;
    }
  };
  for (const int32_t id : ids) take(reader.push(id).value());
  take(reader.finish());
  return "R:" + reasoning + " C:" + content;
}

TEST(AnswerReader, MarkersAreTokens) {
  const Tokenizer tokenizer = fixture();
  const std::string answer = "grüße the </think>x🙂";
  const auto recognised = tokenizer.encode(answer, ControlTokens::kRecognise).value();
  EXPECT_EQ(read(tokenizer, recognised, true), "R:grüße the C:x🙂");
  // The same letters, spelled out by the model, are text.
  const auto letters = tokenizer.encode(answer, ControlTokens::kAsText).value();
  EXPECT_GT(letters.size(), recognised.size());
  EXPECT_EQ(read(tokenizer, letters, true), "R:" + answer + " C:");
}

// What was left of a character belongs before the marker that broke it off.
TEST(AnswerReader, AMarkerWithinACharacter) {
  const Tokenizer tokenizer = fixture();
  const int32_t end = tokenizer.added_token("</think>")->id;
  EXPECT_EQ(read(tokenizer, {'a', 0xC3, end, 'b', 0xC3}, true), "R:a\uFFFD C:b\uFFFD");
}

TEST(AnswerReader, MarkersAreTextWhereTheTokenizerHasNone) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  const auto ids = tokenizer.encode("hm</think>so", ControlTokens::kAsText).value();
  EXPECT_EQ(read(tokenizer, ids, true), "R:hm C:so");
}

TEST(AnswerReader, AnIdWithoutATokenIsAnError) {
  const Tokenizer tokenizer = fixture();
  AnswerReader reader(tokenizer, {});
  EXPECT_FALSE(reader.push(tokenizer.vocabulary_size()).has_value());
}

TEST(AnswerReader, ToolMarkersInLettersCountWhereToolsDo) {
  base::json::object description = small_glm_tokenizer_json();
  base::json::array& markers = description["added_tokens"].as_array();
  markers.resize(9);  // up to </think>
  const Tokenizer tokenizer = tokenizer_of(description);
  AnswerReader reader(tokenizer, {.tool_calls = true});
  std::string said;
  const auto take = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) said += event.text + "|";
  };
  const auto ids = tokenizer.encode("<tool_call>find</tool_call>", ControlTokens::kAsText).value();
  for (const int32_t id : ids) {
    take(reader.push(id).value());
  }
  take(reader.finish());
  EXPECT_EQ(said, "find|{}||");
}

TEST(AnswerReader, PromptsThatLeaveTheModelThinking) {
  const auto ends = [](std::string text, std::vector<TextSpan> data = {}) {
    return ends_in_reasoning({.text = std::move(text), .data = std::move(data)});
  };
  EXPECT_TRUE(ends("<|assistant|><think>"));
  EXPECT_TRUE(ends("<|Assistant|><think>\n"));
  EXPECT_TRUE(ends("hi<think>", {{0, 2}}));
  EXPECT_FALSE(ends("<|assistant|><think></think>"));
  EXPECT_FALSE(ends(""));
  // A user who writes it decides nothing.
  EXPECT_FALSE(ends("<|user|><think>", {{8, 15}}));
  EXPECT_FALSE(ends("<|user|><think>", {{8, 9}}));
}

}  // namespace
}  // namespace ingot::text
