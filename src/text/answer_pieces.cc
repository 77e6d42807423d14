#include "text/answer_pieces.h"

#include <utility>

namespace ingot::text {

AnswerPieces::AnswerPieces(const Tokenizer& tokenizer, AnswerStops stops)
    : detokenizer_(tokenizer, SpecialTokens::kKeep),
      stops_(std::move(stops)),
      search_(stops_.strings) {}

base::Result<std::vector<AnswerPiece>> AnswerPieces::push(int32_t id) {
  std::vector<AnswerPiece> pieces;
  if (match()) return pieces;
  DetokenizedText token = TRY(detokenizer_.push(id));
  ++num_tokens_;
  const bool is_marker = token.added_token != nullptr;
  // What came before the marker, which may be the rest of a broken character.
  if (is_marker && token.added_token_begin > 0) {
    take({.text = token.text.substr(0, token.added_token_begin)}, pieces);
    token.text.erase(0, token.added_token_begin);
    if (match()) {
      pieces.push_back({.ends_token = true});
      return pieces;
    }
  }
  take({.text = std::move(token.text), .is_marker = is_marker, .ends_token = true}, pieces);
  return pieces;
}

std::vector<AnswerPiece> AnswerPieces::finish() {
  std::vector<AnswerPiece> pieces;
  // Not searched: it belongs to no token that could have ended the answer.
  std::string rest = detokenizer_.finish();
  if (match()) return pieces;
  if (!rest.empty()) held_.push_back({.text = std::move(rest)});
  release(SIZE_MAX, pieces);
  return pieces;
}

void AnswerPieces::take(AnswerPiece piece, std::vector<AnswerPiece>& pieces) {
  if (stops_.strings.empty()) {
    pieces.push_back(std::move(piece));
    return;
  }
  if (num_tokens_ <= stops_.min_tokens) {
    search_.pass(piece.text);
  } else {
    search_.push(piece.text);
  }
  held_.push_back(std::move(piece));
  release(search_.num_certain(), pieces);
  if (match()) stop(pieces);
}

// Passes on what lies before byte `end` of the text, but no part of a marker.
void AnswerPieces::release(size_t end, std::vector<AnswerPiece>& pieces) {
  while (!held_.empty()) {
    AnswerPiece& front = held_.front();
    const size_t rest = front.text.size() - front_released_;
    if (rest <= end - num_released_) {
      if (front_released_ > 0) front.text.erase(0, std::exchange(front_released_, 0));
      num_released_ += rest;
      pieces.push_back(std::move(front));
      held_.pop_front();
      continue;
    }
    const size_t part = front.is_marker ? 0 : end - num_released_;
    if (part == 0) return;
    pieces.push_back({.text = front.text.substr(front_released_, part)});
    front_released_ += part;
    num_released_ += part;
    return;
  }
}

// All before the match was passed on but for the beginning of a marker, which is text now. The
// tokens of the rest still count.
void AnswerPieces::stop(std::vector<AnswerPiece>& pieces) {
  const size_t part = match()->begin - num_released_;
  if (part > 0) pieces.push_back({.text = held_.front().text.substr(0, part)});
  for (const AnswerPiece& piece : held_) {
    if (piece.ends_token) pieces.push_back({.ends_token = true});
  }
  held_.clear();
}

}  // namespace ingot::text
