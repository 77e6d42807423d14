#include "server/choice_reader.h"

#include <algorithm>
#include <iterator>

namespace ingot::server {
namespace {

using text::OutputEvent;

std::vector<OutputEvent> as_content(std::vector<text::AnswerPiece> pieces) {
  std::vector<OutputEvent> events;
  for (text::AnswerPiece& piece : pieces) {
    if (piece.text.empty()) continue;
    events.push_back({.kind = OutputEvent::Kind::kContent, .text = std::move(piece.text)});
  }
  return events;
}

}  // namespace

ChoiceReader::ChoiceReader(const AnswerForm& form) {
  if (form.tokenizer == nullptr) return;
  if (form.endpoint == Endpoint::kChatCompletions) {
    answer_.emplace(*form.tokenizer, form.parser, form.stops);
  } else {
    pieces_.emplace(*form.tokenizer, form.stops);
  }
}

base::Result<std::vector<OutputEvent>> ChoiceReader::read(std::span<const int32_t> tokens) {
  std::vector<OutputEvent> events;
  for (const int32_t id : tokens) {
    std::vector<OutputEvent> more;
    if (answer_) more = TRY(answer_->push(id));
    if (pieces_) more = as_content(TRY(pieces_->push(id)));
    std::ranges::move(more, std::back_inserter(events));
  }
  return events;
}

std::vector<OutputEvent> ChoiceReader::finish() {
  if (answer_) return answer_->finish();
  if (pieces_) return as_content(pieces_->finish());
  return {};
}

}  // namespace ingot::server
