#include "text/output_parser.h"

#include <algorithm>
#include <array>

#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "text/python_literal.h"

namespace ingot::text {
namespace {

namespace json = base::json;
using Kind = OutputEvent::Kind;

constexpr std::string_view kSpace = " \t\r\n\f\v";
constexpr auto npos = std::string_view::npos;

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(kSpace);
  if (begin == npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) + 1 - begin);
}

std::string in_quotes(std::string_view text) { return json::serialize(json::string(text)); }

// The inside of a JSON string.
std::string escaped(std::string_view text) {
  std::string string = in_quotes(text);
  return string.substr(1, string.size() - 2);
}

// `{\"a\": 1}` as a model writes it that believes to be inside of a string already.
std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape =
        text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '"' || text[i + 1] == '\\');
    result += text[escape ? ++i : i];
  }
  return result;
}

// The JSON text of a value that may be something else than a string.
std::string value_json(std::string_view text, const JsonTypes& types) {
  const std::string_view inner = trimmed(text);
  const std::string retry = unescaped(inner);
  std::string candidate;
  json::value value;
  // JSON stays as the model spelled it: its numbers may have more digits than a double.
  if (const auto parsed = base::parse_json(inner, "value")) {
    candidate = inner;
    value = *parsed;
  } else if (const auto again = base::parse_json(retry, "value")) {
    candidate = retry;
    value = *again;
  } else if (!types.unknown()) {
    // Where anything is allowed, what looks like Python may as well be text.
    if (const auto literal = parse_python_literal(inner)) {
      candidate = base::compact_json(*literal);
      value = *literal;
    }
  }
  if (candidate.empty() || (types.string && !types.allows(value))) return in_quotes(text);
  if (value.is_string() && types.number && !types.string) {
    // "5" in quotes where only a number may be.
    const std::string_view digits = value.get_string();
    const auto number = base::parse_json(digits, "value");
    if (number && number->is_number()) return std::string(trimmed(digits));
  }
  return candidate;
}

}  // namespace

OutputParser::OutputParser(OutputParserOptions options)
    : options_(std::move(options)),
      state_(options_.starts_in_reasoning ? State::kReasoning : State::kContent),
      at_seam_(options_.starts_in_reasoning) {}

std::string_view OutputParser::spelling(Marker marker) {
  constexpr std::array<std::string_view, kNumMarkers> kSpellings = {
      "<think>",   "</think>",   "<tool_call>", "</tool_call>",
      "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"};
  return kSpellings[static_cast<size_t>(marker)];
}

// Whether a marker is one in this state; otherwise it is text.
bool OutputParser::means_something(Marker marker) const {
  switch (state_) {
    case State::kReasoning:
    case State::kContent:
      return marker == Marker::kThink || marker == Marker::kThinkEnd ||
             (marker == Marker::kToolCall && options_.tool_calls);
    case State::kName:
    case State::kBetween:
      return marker == Marker::kKey || marker == Marker::kToolCallEnd;
    case State::kKey:
      return marker == Marker::kKeyEnd || marker == Marker::kToolCallEnd;
    case State::kAfterKey:
      return marker == Marker::kKey || marker == Marker::kValue || marker == Marker::kToolCallEnd;
    case State::kValue:
      return marker == Marker::kValueEnd || marker == Marker::kToolCallEnd;
  }
  return false;
}

std::vector<OutputEvent> OutputParser::push_text(std::string_view piece) {
  if (options_.markers == MarkerSource::kTokens) {
    text(piece);
  } else {
    held_ += piece;
    scan();
  }
  return take_events();
}

std::vector<OutputEvent> OutputParser::push_marker(std::string_view marker) {
  if (options_.markers == MarkerSource::kText) return push_text(marker);
  for (size_t i = 0; i < kNumMarkers; ++i) {
    const auto candidate = static_cast<Marker>(i);
    if (spelling(candidate) == marker && means_something(candidate)) {
      this->marker(candidate);
      return take_events();
    }
  }
  text(marker);
  return take_events();
}

std::vector<OutputEvent> OutputParser::finish() {
  text(std::exchange(held_, {}));
  if (state_ == State::kReasoning) emit(Kind::kReasoning, std::exchange(space_, {}));
  if (state_ == State::kContent) emit(Kind::kContent, std::exchange(space_, {}));
  return take_events();
}

// Where the next marker of this state begins in `text`, or what may still become one, which leaves
// `marker` alone; npos when neither does.
size_t OutputParser::next_marker(std::string_view text, Marker& marker) const {
  for (size_t at = text.find('<'); at != npos; at = text.find('<', at + 1)) {
    const std::string_view rest = text.substr(at);
    for (size_t i = 0; i < kNumMarkers; ++i) {
      const auto candidate = static_cast<Marker>(i);
      const std::string_view name = spelling(candidate);
      if (!means_something(candidate)) continue;
      if (rest.starts_with(name)) {
        marker = candidate;
        return at;
      }
      if (name.starts_with(rest)) return at;
    }
  }
  return npos;
}

// Takes from the held text all that is decided.
void OutputParser::scan() {
  size_t begin = 0;
  while (true) {
    const std::string_view rest = std::string_view(held_).substr(begin);
    constexpr auto kNone = static_cast<Marker>(kNumMarkers);
    Marker found = kNone;
    const size_t at = std::min(next_marker(rest, found), rest.size());
    text(rest.substr(0, at));
    begin += at;
    if (found == kNone) break;
    begin += spelling(found).size();
    marker(found);
  }
  held_.erase(0, begin);
}

void OutputParser::text(std::string_view piece) {
  switch (state_) {
    case State::kReasoning:
      return trimmed_text(Kind::kReasoning, piece);
    case State::kContent:
      return trimmed_text(Kind::kContent, piece);
    case State::kName:
    case State::kKey:
      name_ += piece;
      return;
    case State::kValue:
      return value_text(piece);
    case State::kBetween:
    case State::kAfterKey:
      return;  // nothing belongs here
  }
}

// Passes text on, but holds white space until it is known whether a seam follows.
void OutputParser::trimmed_text(Kind kind, std::string_view piece) {
  const size_t begin = at_seam_ ? std::min(piece.find_first_not_of(kSpace), piece.size()) : 0;
  piece.remove_prefix(begin);
  const size_t last = piece.find_last_not_of(kSpace);
  if (last == npos) {
    space_ += piece;
    return;
  }
  at_seam_ = false;
  at_start_ = false;
  emit(kind, std::exchange(space_, {}));
  emit(kind, piece.substr(0, last + 1));
  space_ = piece.substr(last + 1);
}

void OutputParser::marker(Marker marker) {
  switch (marker) {
    case Marker::kThink:
      if (!at_start_) return;
      state_ = State::kReasoning;
      break;
    case Marker::kThinkEnd:
      if (state_ == State::kContent) return;
      state_ = State::kContent;
      break;
    case Marker::kToolCall:
      state_ = State::kName;
      name_.clear();
      break;
    case Marker::kKey:
      if (state_ == State::kName) begin_call();
      if (state_ == State::kContent) return text(spelling(marker));
      state_ = State::kKey;
      name_.clear();
      return;
    case Marker::kKeyEnd:
      state_ = State::kAfterKey;
      return;
    case Marker::kValue:
      return begin_value();
    case Marker::kValueEnd:
      return end_value();
    case Marker::kToolCallEnd:
      return end_call();
  }
  space_.clear();
  at_seam_ = true;
  at_start_ = false;
}

// The name is complete. A call without one is put back into the content.
void OutputParser::begin_call() {
  const std::string name(trimmed(std::exchange(name_, {})));
  if (name.empty()) {
    state_ = State::kContent;
    trimmed_text(Kind::kContent, spelling(Marker::kToolCall));
    return;
  }
  emit(Kind::kToolCallBegin, name);
  const auto tool = std::ranges::find(options_.tools, name, &ToolSchema::name);
  schema_ = tool == options_.tools.end() ? nullptr : &*tool;
  keys_.clear();
  state_ = State::kBetween;
}

void OutputParser::begin_value() {
  const std::string key(trimmed(name_));
  state_ = State::kValue;
  value_.clear();
  value_types_ = schema_ == nullptr ? JsonTypes{} : schema_->types_of(key);
  repeated_key_ = std::ranges::find(keys_, key) != keys_.end();
  if (repeated_key_) return;
  emit(Kind::kToolCallArguments, (keys_.empty() ? "{" : ", ") + in_quotes(key) + ": ");
  if (value_types_.only_string()) emit(Kind::kToolCallArguments, "\"");
  keys_.push_back(key);
}

void OutputParser::value_text(std::string_view piece) {
  if (repeated_key_) return;
  if (value_types_.only_string()) {
    emit(Kind::kToolCallArguments, escaped(piece));
  } else {
    value_ += piece;
  }
}

void OutputParser::end_value() {
  state_ = State::kBetween;
  if (repeated_key_) return;
  emit(Kind::kToolCallArguments,
       value_types_.only_string() ? "\"" : value_json(value_, value_types_));
}

void OutputParser::end_call() {
  if (state_ == State::kValue) end_value();
  if (state_ == State::kName) begin_call();
  if (state_ == State::kContent) {
    trimmed_text(Kind::kContent, spelling(Marker::kToolCallEnd));
    return;
  }
  emit(Kind::kToolCallArguments, keys_.empty() ? "{}" : "}");
  emit(Kind::kToolCallEnd, "");
  ++num_tool_calls_;
  state_ = State::kContent;
  at_seam_ = true;
}

void OutputParser::emit(Kind kind, std::string_view text) {
  const bool is_piece = kind != Kind::kToolCallBegin && kind != Kind::kToolCallEnd;
  if (is_piece && text.empty()) return;
  if (is_piece && !events_.empty() && events_.back().kind == kind) {
    events_.back().text += text;
  } else {
    events_.push_back({.kind = kind, .text = std::string(text)});
  }
}

std::vector<OutputEvent> OutputParser::take_events() { return std::exchange(events_, {}); }

}  // namespace ingot::text
