#include "text/answer_reader.h"

#include <iterator>

namespace ingot::text {
namespace {

constexpr std::string_view kReasoningBegin = "<think>";
constexpr std::string_view kReasoningEnd = "</think>";

OutputParserOptions with_markers(OutputParserOptions options, const Tokenizer& tokenizer) {
  const auto end = tokenizer.token_id(kReasoningEnd);
  const bool is_token = end && tokenizer.added_token(*end) != nullptr;
  options.markers = is_token ? MarkerSource::kTokens : MarkerSource::kText;
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

bool ends_in_reasoning(std::string_view prompt) {
  prompt = prompt.substr(0, prompt.find_last_not_of(" \t\r\n") + 1);
  return prompt.ends_with(kReasoningBegin);
}

}  // namespace ingot::text
