#pragma once

#include <cstdint>
#include <vector>

#include "text/detokenizer.h"
#include "text/output_parser.h"
#include "text/tokenizer.h"

namespace ingot::text {

// From the tokens of an answer to what it says: a detokenizer and an output parser. Markers count
// as tokens where the tokenizer has them as added tokens, and are searched for in the text
// elsewhere.
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

// Whether a prompt leaves the model inside of its reasoning: its last word is <think>.
bool ends_in_reasoning(std::string_view prompt);

}  // namespace ingot::text
