#pragma once

#include <cstdint>
#include <vector>

#include "text/detokenizer.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace ingot::text {

// From the tokens of an answer to what it says: a detokenizer and an output parser. Markers count
// as tokens if the tokenizer has all that matter here as added tokens; otherwise they are searched
// for in the text.
class AnswerReader {
 public:
  // `tokenizer` must outlive it. `options.markers` is decided here.
  AnswerReader(const Tokenizer& tokenizer, OutputParserOptions options);

  // Errors: an id that no token has.
  base::Result<std::vector<OutputEvent>> push(int32_t id);
  std::vector<OutputEvent> finish();

 private:
  Detokenizer detokenizer_;
  OutputParser parser_;
};

// Whether a prompt leaves the model inside of its reasoning: its last word is a <think> that is no
// data.
bool ends_in_reasoning(const PromptText& prompt);

}  // namespace ingot::text
