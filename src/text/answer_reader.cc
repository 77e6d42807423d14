#include "text/answer_reader.h"

#include <algorithm>
#include <iterator>

namespace ingot::text {
namespace {

constexpr std::string_view kReasoningBegin = "<think>";
constexpr std::string_view kReasoningMarkers[] = {kReasoningBegin, "</think>"};
constexpr std::string_view kToolMarkers[] = {"<tool_call>", "</tool_call>", "<arg_key>",
                                             "</arg_key>",  "<arg_value>",  "</arg_value>"};

OutputParserOptions with_markers(OutputParserOptions options, const Tokenizer& tokenizer) {
  const auto is_token = [&](std::string_view marker) {
    return tokenizer.added_token(marker) != nullptr;
  };
  const bool all_are_tokens = std::ranges::all_of(kReasoningMarkers, is_token) &&
                              (!options.tool_calls || std::ranges::all_of(kToolMarkers, is_token));
  options.markers = all_are_tokens ? MarkerSource::kTokens : MarkerSource::kText;
  return options;
}

}  // namespace

AnswerReader::AnswerReader(const Tokenizer& tokenizer, OutputParserOptions options)
    : detokenizer_(tokenizer, SpecialTokens::kKeep),
      parser_(with_markers(std::move(options), tokenizer)) {}

base::Result<std::vector<OutputEvent>> AnswerReader::push(int32_t id) {
  const DetokenizedText piece = TRY(detokenizer_.push(id));
  if (piece.added_token == nullptr) return parser_.push_text(piece.text);
  // What came before the marker, which may be the rest of a broken character.
  const std::string_view before = std::string_view(piece.text).substr(0, piece.added_token_begin);
  std::vector<OutputEvent> events = parser_.push_text(before);
  std::ranges::move(parser_.push_marker(piece.added_token->content), std::back_inserter(events));
  return events;
}

std::vector<OutputEvent> AnswerReader::finish() {
  std::vector<OutputEvent> events = parser_.push_text(detokenizer_.finish());
  std::ranges::move(parser_.finish(), std::back_inserter(events));
  return events;
}

bool ends_in_reasoning(const PromptText& prompt) {
  const size_t end = prompt.text.find_last_not_of(" \t\r\n") + 1;
  const std::string_view text = std::string_view(prompt.text).substr(0, end);
  if (!text.ends_with(kReasoningBegin)) return false;
  const size_t begin = end - kReasoningBegin.size();
  return std::ranges::none_of(
      prompt.data, [&](const TextSpan& data) { return data.begin < end && begin < data.end; });
}

}  // namespace ingot::text
