#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "server/prepared_request.h"
#include "text/answer_pieces.h"
#include "text/answer_reader.h"
#include "text/output_parser.h"

namespace ingot::server {

// From the tokens of one choice to what it says, as they come: of a chat reasoning, content and
// tool calls; of a completion content alone, markers included. Without a tokenizer it says nothing.
// One thread at a time.
class ChoiceReader {
 public:
  // The form's tokenizer must outlive it.
  explicit ChoiceReader(const AnswerForm& form);

  // Errors: an id that no token has.
  base::Result<std::vector<text::OutputEvent>> read(std::span<const int32_t> tokens);
  // The choice is over.
  std::vector<text::OutputEvent> finish();

  int32_t num_reasoning_tokens() const { return answer_ ? answer_->num_reasoning_tokens() : 0; }

 private:
  std::optional<text::AnswerReader> answer_;  // of a chat
  std::optional<text::AnswerPieces> pieces_;  // of a completion
};

}  // namespace ingot::server
