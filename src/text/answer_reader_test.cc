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

// Reasoning, content and calls as they were said, and what was counted.
struct Reading {
  std::string said;
  int32_t num_reasoning_tokens = 0;
  std::optional<StopMatch> match = {};
};

Reading read_all(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                 const OutputParserOptions& options, AnswerStops stops = {}) {
  constexpr const char* kNames[] = {" R:", " C:", " T:", " A:", " E"};
  AnswerReader reader(tokenizer, options, std::move(stops));
  Reading reading;
  std::optional<OutputEvent::Kind> last;
  const auto take = [&](const std::vector<OutputEvent>& events) {
    for (const OutputEvent& event : events) {
      if (last != event.kind) reading.said += kNames[static_cast<size_t>(event.kind)];
      reading.said += event.text;
      last = event.kind;
    }
  };
  for (const int32_t id : ids) take(reader.push(id).value());
  take(reader.finish());
  reading.num_reasoning_tokens = reader.num_reasoning_tokens();
  reading.match = reader.match();
  return reading;
}

constexpr std::string_view kAnswers[] = {
    "Let me think.\n</think>\nHello é!",
    "<think>\nthought</think>answer <think>",
    "no end of it \n",
    "I look.</think>Searching. \n<tool_call>find<arg_key>query</arg_key><arg_value>a \"b\"\n c\\"
    "</arg_value></tool_call>\n then <tool_call>find</tool_call>done",
};
const std::vector<std::vector<std::string>> kStops = {
    {"think>"},          {"e.\n</thi", "ng."}, {"</think>"},   {"é", "!"},
    {"k>\nH"},           {"</arg_value>"},     {"arg", "key"}, {"\n c", " the"},
    {"never", "Let mf"}, {"l></to"},           {">\n"},        {"g. \n<tool_call>fi", "<t"}};

// However the markers arrive, an answer with a stop string reads as one that was over before it.
TEST(AnswerReader, AStopStringCutsTheTextAnywhere) {
  const Tokenizer glm = fixture();
  const Tokenizer without_markers = tokenizer_of(small_tokenizer_json());
  size_t num_stopped = 0;
  for (const std::string_view answer : kAnswers) {
    for (const std::vector<std::string>& strings : kStops) {
      StopStrings search(strings);
      search.push(answer);
      num_stopped += search.match().has_value() ? 1 : 0;
      for (const Tokenizer* tokenizer : {&glm, &without_markers}) {
        const auto ids = [&](std::string_view text) {
          return tokenizer->encode(text, ControlTokens::kRecognise).value();
        };
        const OutputParserOptions options{.starts_in_reasoning = true, .tool_calls = true};
        const Reading stopped = read_all(*tokenizer, ids(answer), options, {.strings = strings});
        const std::string_view before = answer.substr(0, search.num_certain());
        const Reading expected =
            read_all(*tokenizer, ids(search.match() ? before : answer), options);
        EXPECT_EQ(stopped.said, expected.said) << answer << "\n" << strings.front();
        EXPECT_EQ(stopped.match, search.match());
      }
    }
  }
  EXPECT_GT(num_stopped, 15u);
}

TEST(AnswerReader, HoldsBackWhatMayBelongToAStopString) {
  const Tokenizer tokenizer = fixture();
  AnswerReader reader(tokenizer, {.starts_in_reasoning = true}, {.strings = {"b</think>c!"}});
  const auto push = [&](int32_t id) {
    std::string said;
    const auto events = reader.push(id).value();
    for (const OutputEvent& event : events) {
      said += (event.kind == OutputEvent::Kind::kReasoning ? "R:" : "C:") + event.text;
    }
    return said;
  };
  const int32_t end = tokenizer.added_token("</think>")->id;
  EXPECT_EQ(push('a'), "R:a");
  EXPECT_EQ(push('b'), "");
  EXPECT_EQ(push(end), "");
  EXPECT_EQ(push('c'), "");
  EXPECT_EQ(reader.num_reasoning_tokens(), 1);
  EXPECT_EQ(push('b'), "R:bC:c");
  EXPECT_EQ(push(end), "");
  EXPECT_EQ(push('d'), "C:bC:d");
  EXPECT_EQ(reader.num_reasoning_tokens(), 2);
  EXPECT_FALSE(reader.match().has_value());
}

TEST(AnswerReader, NothingComesAfterAStopString) {
  const Tokenizer tokenizer = fixture();
  AnswerReader reader(tokenizer, {}, {.strings = {"b"}});
  ASSERT_EQ(reader.push('a').value().size(), 1u);
  for (const int32_t id : std::vector<int32_t>{'b', 'c', 0xC3})
    EXPECT_TRUE(reader.push(id).value().empty());
  EXPECT_TRUE(reader.finish().empty());
}

TEST(AnswerReader, StopStringsWaitForTheFirstTokens) {
  const Tokenizer tokenizer = fixture();
  const auto read_with = [&](int64_t min_tokens) {
    return read_all(tokenizer, {'a', 'b', 'a', 'b', 'c', 'a', 'b'}, {},
                    {.strings = {"ab", "bc"}, .min_tokens = min_tokens});
  };
  EXPECT_EQ(read_with(1).said, "");
  EXPECT_EQ(read_with(2).match, (StopMatch{2, 4, 0}));
  // Complete with the fifth token, though it begins before.
  EXPECT_EQ(read_with(4).said, " C:aba");
  EXPECT_EQ(read_with(5).said, " C:ababc");
  EXPECT_EQ(read_with(7).said, " C:ababcab");
}

TEST(AnswerReader, CountsReasoning) {
  const auto count = [](const Tokenizer& tokenizer, std::string_view answer,
                        bool starts_in_reasoning, AnswerStops stops = {}) {
    const auto ids = tokenizer.encode(answer, ControlTokens::kRecognise).value();
    return read_all(tokenizer, ids, {.starts_in_reasoning = starts_in_reasoning}, std::move(stops))
        .num_reasoning_tokens;
  };
  const Tokenizer glm = fixture();
  EXPECT_EQ(count(glm, "one two</think>abc", true), 7);
  EXPECT_EQ(count(glm, "<think>one two</think>abc", true), 7);
  EXPECT_EQ(count(glm, "<think>one two</think>abc", false), 7);
  EXPECT_EQ(count(glm, "one two", true), 7);
  EXPECT_EQ(count(glm, "one two", false), 0);
  // A character of two tokens.
  EXPECT_EQ(count(glm, "é</think>é", true), 2);
  // A stop string cuts the text; its tokens were computed none the less.
  EXPECT_EQ(count(glm, "one two</think>abc", true, {.strings = {"two"}}), 7);
  EXPECT_EQ(count(glm, "one two</think>abc", true, {.strings = {"</thi"}}), 8);
  // Letters that may become a marker count until it is one.
  EXPECT_EQ(count(tokenizer_of(small_tokenizer_json()), "one two</think>abc", true), 7 + 7);
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
