#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace ingot::text {

// What one more token made certain.
struct DetokenizedText {
  std::string text;  // UTF-8, whole characters
  // The token itself, if it is an added one; parsers of model output go by it and not by its text.
  const AddedToken* added_token = nullptr;
  // Where the added token's own text begins; what is before belongs to earlier tokens. The end of
  // the text if there is no added token, or it was left out as special.
  size_t added_token_begin = 0;
};

// Turns the ids of one sequence into text as they come, without ever giving a part of a character.
// All that push() and finish() give, one after the other, is what Tokenizer::decode() gives for all
// ids at once. One thread at a time.
class Detokenizer {
 public:
  // REQUIRES: the tokenizer outlives this.
  Detokenizer(const Tokenizer& tokenizer, SpecialTokens special)
      : tokenizer_(&tokenizer), special_(special) {}

  // Errors: an id that no token has; the text so far is not affected.
  base::Result<DetokenizedText> push(int32_t id);

  // What is left of a character that never became whole: "" or U+FFFD. Ready for a new sequence.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  SpecialTokens special_;
  std::string incomplete_;  // the beginning of a character
};

}  // namespace ingot::text
