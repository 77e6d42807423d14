#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "server/answer_fields.h"
#include "server/api_error.h"

namespace ingot::server {

// OpenAI's: what an answer has where nothing is said.
inline constexpr int32_t kCompletionMaxTokensDefault = 16;
// Prompts times n.
inline constexpr size_t kCompletionChoicesMax = 2048;

// Text, in which control tokens are text like any other, or token ids.
using CompletionPrompt = std::variant<std::string, std::vector<int32_t>>;

// The body of a /v1/completions request.
struct CompletionRequest {
  AnswerFields answer = {};
  std::vector<CompletionPrompt> prompts = {};  // at least one; each has answer.n answers
  bool echo = false;                           // the answer begins with the prompt
};

// Errors: as for parse_chat_request.
ApiResult<CompletionRequest> parse_completion_request(const base::json::object& body);
ApiResult<CompletionRequest> parse_completion_request(std::string_view body);

}  // namespace ingot::server
