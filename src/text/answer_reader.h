#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "text/answer_pieces.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace ingot::text {

// From the tokens of an answer to what it says: its text, cut before the first stop string, and an
// output parser. Markers count as tokens if the tokenizer has all that matter here as added tokens;
// otherwise they are searched for in the text. What a stop string cuts is what it would be if the
// model had said nothing more.
class AnswerReader {
 public:
  // `tokenizer` must outlive it. `options.markers` is decided here.
  AnswerReader(const Tokenizer& tokenizer, OutputParserOptions options, AnswerStops stops = {});

  // After a stop string nothing comes any more. Errors: an id that no token has.
  base::Result<std::vector<OutputEvent>> push(int32_t id);
  std::vector<OutputEvent> finish();

  // Tokens that belong to the reasoning, without its markers and without a token that it ends in.
  // What is held back is not counted yet.
  int32_t num_reasoning_tokens() const { return num_reasoning_tokens_; }
  // The stop string that ended the answer; the places are those in its text, markers included.
  const std::optional<StopMatch>& match() const { return pieces_.match(); }

 private:
  std::vector<OutputEvent> parse(const std::vector<AnswerPiece>& pieces);

  AnswerPieces pieces_;
  OutputParser parser_;
  int32_t num_reasoning_tokens_ = 0;
};

// Whether a prompt leaves the model inside of its reasoning: its last word is a <think> that is no
// data.
bool ends_in_reasoning(const PromptText& prompt);

}  // namespace ingot::text
