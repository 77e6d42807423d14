#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "text/detokenizer.h"
#include "text/stop_strings.h"
#include "text/tokenizer.h"

namespace ingot::text {

// At what an answer's text ends.
struct AnswerStops {
  std::vector<std::string> strings = {};  // none of them empty
  // A string that is complete within as many tokens is text like any other.
  int64_t min_tokens = 0;
};

// Text of an answer that is certain to belong to it.
struct AnswerPiece {
  std::string text = {};    // UTF-8, whole characters
  bool is_marker = false;   // the text of one added token
  bool ends_token = false;  // exactly one piece of each token; its text may be empty
};

// From the tokens of an answer to its text, cut before the first stop string: a detokenizer that
// holds back what may still turn out to be a part of one. Stop strings are searched for in all of
// the text, that of markers included. A marker is passed on whole; one that a stop string begins in
// leaves the text before it. One thread at a time.
class AnswerPieces {
 public:
  // `tokenizer` must outlive it.
  AnswerPieces(const Tokenizer& tokenizer, AnswerStops stops);

  // Once stopped, nothing comes any more. Errors: an id that no token has.
  base::Result<std::vector<AnswerPiece>> push(int32_t id);
  // The answer is over: what was held back, if it has not stopped.
  std::vector<AnswerPiece> finish();

  // The stop string that ended the text; the places are those in the text.
  const std::optional<StopMatch>& match() const { return search_.match(); }

 private:
  void take(AnswerPiece piece, std::vector<AnswerPiece>& pieces);
  void release(size_t end, std::vector<AnswerPiece>& pieces);
  void stop(std::vector<AnswerPiece>& pieces);

  Detokenizer detokenizer_;
  const AnswerStops stops_;
  StopStrings search_;
  int64_t num_tokens_ = 0;
  std::deque<AnswerPiece>
      held_;                   // what came and was not passed on, the first of it perhaps in part
  size_t num_released_ = 0;    // bytes of all text that were passed on
  size_t front_released_ = 0;  // of which these are of the first piece that is held
};

}  // namespace ingot::text
