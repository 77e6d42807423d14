#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/tool_schema.h"

namespace ingot::text {

// One more piece of what a model says, sorted. Pieces of the same kind in a row belong together.
struct OutputEvent {
  enum class Kind : uint8_t {
    kReasoning,
    kContent,
    kToolCallBegin,      // text is the tool's name
    kToolCallArguments,  // a piece of the JSON object of arguments
    kToolCallEnd,        // the object is whole; a call without this was cut off
  };
  Kind kind;
  std::string text = {};

  bool operator==(const OutputEvent&) const = default;
};

// How the markers of the output are told from text that looks like them.
enum class MarkerSource : uint8_t {
  kTokens,  // only tokens count, which the caller passes to push_marker
  kText,    // the text is searched, for models whose markers are no single tokens
};

struct OutputParserOptions {
  MarkerSource markers = MarkerSource::kTokens;
  bool starts_in_reasoning = false;  // the prompt ends with <think>
  bool tool_calls = false;           // otherwise <tool_call> is text like any other
  std::vector<ToolSchema> tools = {};
};

// Sorts a model's output, as it arrives, into reasoning, content and tool calls in the syntax of
// GLM-4.7 and GLM-5:
//
//   REASONING</think>CONTENT<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>
//   ...</tool_call>CONTENT
//
// The events depend on the output alone, never on how it was cut into pieces (but for the cuts
// between events of one kind). White space is dropped at both ends of the reasoning and around tool
// calls. A <think> that opens the output begins reasoning; one elsewhere, and a stray </think>, are
// dropped. A <tool_call> ends the reasoning. Without an end marker everything is reasoning.
//
// An argument whose schema allows only a string is that text, unchanged. Any other is the JSON that
// it holds, or JSON after \" and \\ are undone, or, where a schema says something, a Python
// literal; if that is nothing that the schema allows and a string is allowed, or if nothing can be
// read, it is a string. A number in quotes is a number where no string is allowed. Of a key that a
// call has twice the first value stays. The first </tool_call> ends a call, wherever it stands, and
// a call without a name is content. One that is cut off within its name gives no event.
class OutputParser {
 public:
  explicit OutputParser(OutputParserOptions options);

  // UTF-8; in whole characters if the events' pieces are to be so.
  std::vector<OutputEvent> push_text(std::string_view piece);
  // A token of its own that stands for `marker`, such as "</think>". Text, if it means nothing here
  // or if markers are searched for in the text.
  std::vector<OutputEvent> push_marker(std::string_view marker);
  // The output is over: what was held back. Nothing may be pushed afterwards.
  std::vector<OutputEvent> finish();

  size_t num_tool_calls() const { return num_tool_calls_; }  // that are whole
  bool in_reasoning() const { return state_ == State::kReasoning; }

 private:
  enum class State : uint8_t { kReasoning, kContent, kName, kBetween, kKey, kAfterKey, kValue };
  enum class Marker : uint8_t {
    kThink,
    kThinkEnd,
    kToolCall,
    kToolCallEnd,
    kKey,
    kKeyEnd,
    kValue,
    kValueEnd,
  };
  static constexpr size_t kNumMarkers = 8;

  static std::string_view spelling(Marker marker);
  bool means_something(Marker marker) const;
  size_t next_marker(std::string_view text, Marker& marker) const;
  void scan();
  void text(std::string_view piece);
  void marker(Marker marker);
  void trimmed_text(OutputEvent::Kind kind, std::string_view piece);
  void begin_call();
  void begin_value();
  void value_text(std::string_view piece);
  void end_value();
  void end_call();
  void emit(OutputEvent::Kind kind, std::string_view text);
  std::vector<OutputEvent> take_events();

  const OutputParserOptions options_;
  State state_;
  std::string held_;      // the end of the text so far, which may be the start of a marker
  bool at_seam_;          // white space that comes now is dropped
  bool at_start_ = true;  // nothing but white space has come
  std::string space_;     // white space that is dropped if a seam follows
  std::string name_;      // of the tool, or of the argument
  std::string value_;     // of an argument that may be no string
  JsonTypes value_types_;
  bool repeated_key_ = false;
  const ToolSchema* schema_ = nullptr;  // of the tool that is called
  std::vector<std::string> keys_;       // of the call so far
  size_t num_tool_calls_ = 0;
  std::vector<OutputEvent> events_;
};

}  // namespace ingot::text
