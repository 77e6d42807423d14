#include "text/output_parser.h"

#include <array>

#include <gtest/gtest.h>

#include "base/mapped_file.h"

namespace ingot::text {
namespace {

using Kind = OutputEvent::Kind;
using Events = std::vector<OutputEvent>;

constexpr std::array<std::string_view, 8> kMarkers = {"<think>",      "</think>",    "<tool_call>",
                                                      "</tool_call>", "<arg_key>",   "</arg_key>",
                                                      "<arg_value>",  "</arg_value>"};

// Pieces of one kind that follow each other are one.
void append(Events& all, const Events& more) {
  for (const OutputEvent& event : more) {
    const bool piece = event.kind != Kind::kToolCallBegin && event.kind != Kind::kToolCallEnd;
    if (piece && !all.empty() && all.back().kind == event.kind) {
      all.back().text += event.text;
    } else {
      all.push_back(event);
    }
  }
}

// "R:thought C:answer T:name A:{...} E", which reads better in a failure.
std::string spelled(const Events& events) {
  constexpr const char* kNames[] = {"R:", "C:", "T:", "A:", "E"};
  std::string text;
  for (const OutputEvent& event : events) {
    text += (text.empty() ? "" : " ") + std::string(kNames[static_cast<size_t>(event.kind)]) +
            event.text;
  }
  return text;
}

std::vector<ToolSchema> tools() {
  return parse_tools(base::parse_json(R"([
      {"name": "find", "parameters": {"properties": {
          "query": {"type": "string"}, "limit": {"type": "integer"},
          "strict": {"type": "boolean"}, "filter": {"type": ["string", "object"]},
          "note": {"type": ["string", "null"]}}}}])",
                                      "tools")
                         .value())
      .value();
}

OutputParserOptions options(bool starts_in_reasoning, MarkerSource markers) {
  return {.markers = markers,
          .starts_in_reasoning = starts_in_reasoning,
          .tool_calls = true,
          .tools = tools()};
}

// The output as tokens: markers whole, and everything else byte by byte.
std::vector<std::string_view> tokens_of(std::string_view output) {
  std::vector<std::string_view> tokens;
  while (!output.empty()) {
    size_t size = 1;
    for (const std::string_view marker : kMarkers) {
      if (output.starts_with(marker)) size = marker.size();
    }
    tokens.push_back(output.substr(0, size));
    output.remove_prefix(size);
  }
  return tokens;
}

bool is_marker(std::string_view token) { return token.size() > 1; }

// All of the output, `step` tokens at a time, as a detokenizer would pass them on.
std::string by_tokens(std::string_view output, OutputParserOptions parser_options, size_t step) {
  OutputParser parser(std::move(parser_options));
  Events events;
  std::string pending;
  size_t in_piece = 0;
  for (const std::string_view token : tokens_of(output)) {
    if (is_marker(token)) {
      append(events, parser.push_text(std::exchange(pending, {})));
      append(events, parser.push_marker(token));
    } else {
      pending += token;
      if (++in_piece % step == 0) append(events, parser.push_text(std::exchange(pending, {})));
    }
  }
  append(events, parser.push_text(pending));
  append(events, parser.finish());
  return spelled(events);
}

std::string in_two(std::string_view output, OutputParserOptions parser_options, size_t cut) {
  OutputParser parser(std::move(parser_options));
  Events events = parser.push_text(output.substr(0, cut));
  append(events, parser.push_text(output.substr(cut)));
  append(events, parser.finish());
  return spelled(events);
}

std::string in_pieces(std::string_view output, OutputParserOptions parser_options, size_t size) {
  OutputParser parser(std::move(parser_options));
  Events events;
  for (size_t at = 0; at < output.size(); at += size) {
    append(events, parser.push_text(output.substr(at, size)));
  }
  append(events, parser.finish());
  return spelled(events);
}

struct Golden {
  bool starts_in_reasoning;
  std::string output;
  std::string expected;
};

// What GLM-4.7 and GLM-5 say, whole and broken, and how it is to be taken.
std::vector<Golden> goldens() {
  return {
      {true, "Let me think.\n</think>\nHello é!", "R:Let me think. C:Hello é!"},
      {true, "<think>\nthought</think>answer", "R:thought C:answer"},
      {true, "no end", "R:no end"},
      {true, "cut \n", "R:cut \n"},
      {true, "", ""},
      {true, "</think>only", "C:only"},
      {true, "a<think>b</think>c</think>d<think>e", "R:ab C:cde"},
      {false, "  plain text \n", "C:  plain text \n"},
      {false, "\n<think>sudden</think> answer", "R:sudden C:answer"},
      {false, "1 < 2 and <b> & </thin", "C:1 < 2 and <b> & </thin"},
      {true,
       "I look.</think>Searching. \n<tool_call>find<arg_key>query</arg_key>"
       "<arg_value>a \"b\"\n c\\</arg_value>\n<arg_key>limit</arg_key>\\n "
       "<arg_value> 5 </arg_value></tool_call>\n",
       R"(R:I look. C:Searching. T:find A:{"query": "a \"b\"\n c\\", "limit": 5} E)"},
      {true, "think<tool_call>find</tool_call>", "R:think T:find A:{} E"},
      {false, "<tool_call>\nfind \n</tool_call> then <tool_call>stop</tool_call> done",
       "T:find A:{} E C:then T:stop A:{} E C:done"},
      {false,
       "<tool_call>find<arg_key>strict</arg_key><arg_value>True</arg_value><arg_key>filter"
       "</arg_key><arg_value>{'a': [1, None]}</arg_value></tool_call>",
       R"(T:find A:{"strict": true, "filter": {"a":[1,null]}} E)"},
      {false,
       "<tool_call>find<arg_key>filter</arg_key><arg_value>{\\\"a\\\": 1}</arg_value></tool_call>",
       R"(T:find A:{"filter": {"a": 1}} E)"},
      {false, "<tool_call>find<arg_key>filter</arg_key><arg_value>7</arg_value></tool_call>",
       R"(T:find A:{"filter": "7"} E)"},
      {false, "<tool_call>find<arg_key>limit</arg_key><arg_value>\"7\"</arg_value></tool_call>",
       R"(T:find A:{"limit": 7} E)"},
      {false, "<tool_call>find<arg_key>note</arg_key><arg_value>null</arg_value></tool_call>",
       R"(T:find A:{"note": null} E)"},
      {false, "<tool_call>find<arg_key>limit</arg_key><arg_value>many</arg_value></tool_call>",
       R"(T:find A:{"limit": "many"} E)"},
      {false,
       "<tool_call>other<arg_key>big</arg_key><arg_value>123456789012345678901234567890</arg_value>"
       "<arg_key>text</arg_key><arg_value> as it is </arg_value></tool_call>",
       R"(T:other A:{"big": 123456789012345678901234567890, "text": " as it is "} E)"},
      {false,
       "<tool_call>find<arg_key>query</arg_key><arg_value>1</arg_value><arg_key>query</arg_key>"
       "<arg_value>2</arg_value></tool_call>",
       R"(T:find A:{"query": "1"} E)"},
      {false,
       "<tool_call>find<arg_key>lost<arg_key>query</arg_key>x<arg_key>limit</arg_key>"
       "<arg_value>2</tool_call>",
       R"(T:find A:{"limit": 2} E)"},
      {false, "<tool_call>find<arg_key>query</arg_key><arg_value></arg_value></tool_call>",
       R"(T:find A:{"query": ""} E)"},
      {false, "<tool_call> </tool_call>x", "C:<tool_call></tool_call>x"},
      {false, "<tool_call><arg_key>a</arg_key>", "C:<tool_call><arg_key>a</arg_key>"},
      {false, "<tool_call>find<arg_key>query</arg_key><arg_value>half of",
       R"(T:find A:{"query": "half of)"},
      {false, "<tool_call>find<arg_key>limit</arg_key><arg_value>1", R"(T:find A:{"limit": )"},
      {false, "<tool_call>fi", ""},
  };
}

TEST(OutputParser, GoldenOutputsByTokens) {
  for (const Golden& golden : goldens()) {
    for (const size_t step : {1, 2, 3, 7, 1000}) {
      EXPECT_EQ(by_tokens(golden.output, options(golden.starts_in_reasoning, MarkerSource::kTokens),
                          step),
                golden.expected)
          << golden.output << "\n"
          << step << " tokens at a time";
    }
  }
}

TEST(OutputParser, GoldenOutputsSplitAtEveryByte) {
  for (const Golden& golden : goldens()) {
    const auto parser_options = options(golden.starts_in_reasoning, MarkerSource::kText);
    for (size_t cut = 0; cut <= golden.output.size(); ++cut) {
      EXPECT_EQ(in_two(golden.output, parser_options, cut), golden.expected)
          << golden.output << "\ncut at " << cut;
    }
    for (const size_t size : {1, 2, 3, 5, 11}) {
      EXPECT_EQ(in_pieces(golden.output, parser_options, size), golden.expected)
          << golden.output << "\nin pieces of " << size;
    }
  }
}

// What sglang's parser makes of the same outputs; tools/make_golden_tool_calls.py wrote the file.
TEST(OutputParser, CallsAsSglangReadsThem) {
  const std::string path = INGOT_SOURCE_DIR "/tests/golden/text/tool_calls.json";
  const auto golden = base::parse_json(base::read_text_file(path, 1 << 20).value(), path).value();
  const auto schemas = parse_tools(golden.at("tools")).value();
  for (const base::json::value& test : golden.at("cases").as_array()) {
    const std::string_view output = test.at("output").as_string();
    OutputParser parser({.markers = MarkerSource::kText, .tool_calls = true, .tools = schemas});
    Events events = parser.push_text(output);
    append(events, parser.finish());
    base::json::array calls;
    std::string arguments;
    for (const OutputEvent& event : events) {
      if (event.kind == Kind::kToolCallBegin)
        calls.push_back(base::json::object{{"name", event.text}});
      if (event.kind == Kind::kToolCallArguments) arguments += event.text;
      if (event.kind != Kind::kToolCallEnd) continue;
      calls.back().as_object()["arguments"] =
          base::parse_json(std::exchange(arguments, {}), "arguments").value();
    }
    EXPECT_EQ(base::compact_json(calls), base::compact_json(test.at("calls"))) << output;
  }
}

// What a model writes in letters is no marker when markers are tokens.
TEST(OutputParser, TextThatLooksLikeAMarker) {
  OutputParser parser(options(true, MarkerSource::kTokens));
  Events events = parser.push_text("it writes </think> and <tool_call>");
  append(events, parser.push_marker("</think>"));
  append(events, parser.push_text("done"));
  append(events, parser.push_marker("<|unknown|>"));
  append(events, parser.finish());
  EXPECT_EQ(spelled(events), "R:it writes </think> and <tool_call> C:done<|unknown|>");
}

TEST(OutputParser, WithoutToolsACallIsText) {
  OutputParserOptions plain = options(true, MarkerSource::kTokens);
  plain.tool_calls = false;
  const std::string output = "hm <tool_call>find</tool_call></think>so <tool_call>find";
  const std::string expected = "R:hm <tool_call>find</tool_call> C:so <tool_call>find";
  EXPECT_EQ(by_tokens(output, plain, 3), expected);
  plain.markers = MarkerSource::kText;
  for (size_t cut = 0; cut <= output.size(); ++cut) {
    EXPECT_EQ(in_two(output, plain, cut), expected) << cut;
  }
}

// Text is passed on as soon as nothing that may come can change what it is.
TEST(OutputParser, HoldsBackNoMoreThanItMust) {
  OutputParser parser(options(true, MarkerSource::kText));
  EXPECT_EQ(spelled(parser.push_text("one two ")), "R:one two");
  EXPECT_EQ(spelled(parser.push_text("three <")), "R: three");
  EXPECT_EQ(spelled(parser.push_text("b>")), "R: <b>");
  EXPECT_EQ(spelled(parser.push_text("</think>x<tool_call>find<arg_key>")), "C:x T:find");
  EXPECT_EQ(spelled(parser.push_text("query</arg_key><arg_value>val")), R"(A:{"query": "val)");
  EXPECT_EQ(spelled(parser.push_text("ue</arg")), "A:ue");
  EXPECT_EQ(spelled(parser.push_text("_value></tool_call>")), "A:\"} E");
  EXPECT_EQ(parser.num_tool_calls(), 1u);
  EXPECT_TRUE(parser.finish().empty());
}

// Linear: a megabyte of almost-markers arrives a byte at a time.
TEST(OutputParser, ManyAlmostMarkers) {
  OutputParser parser(options(true, MarkerSource::kText));
  size_t bytes = 0;
  for (int i = 0; i < 1 << 20; ++i) {
    for (const OutputEvent& event : parser.push_text("<")) bytes += event.text.size();
  }
  for (const OutputEvent& event : parser.finish()) bytes += event.text.size();
  EXPECT_EQ(bytes, size_t{1} << 20);
}

}  // namespace
}  // namespace ingot::text
