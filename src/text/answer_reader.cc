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

AnswerReader::AnswerReader(const Tokenizer& tokenizer, OutputParserOptions options,
                           AnswerStops stops)
    : pieces_(tokenizer, std::move(stops)), parser_(with_markers(std::move(options), tokenizer)) {}

base::Result<std::vector<OutputEvent>> AnswerReader::push(int32_t id) {
  return parse(TRY(pieces_.push(id)));
}

std::vector<OutputEvent> AnswerReader::finish() {
  std::vector<OutputEvent> events = parse(pieces_.finish());
  std::ranges::move(parser_.finish(), std::back_inserter(events));
  return events;
}

std::vector<OutputEvent> AnswerReader::parse(const std::vector<AnswerPiece>& pieces) {
  std::vector<OutputEvent> events;
  for (const AnswerPiece& piece : pieces) {
    const bool begins_in_reasoning = parser_.in_reasoning();
    std::ranges::move(
        piece.is_marker ? parser_.push_marker(piece.text) : parser_.push_text(piece.text),
        std::back_inserter(events));
    const bool is_reasoning = begins_in_reasoning && parser_.in_reasoning() &&
                              !(piece.is_marker && piece.text == kReasoningBegin);
    if (piece.ends_token && is_reasoning) ++num_reasoning_tokens_;
  }
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
