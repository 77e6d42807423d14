#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/token_logprobs.h"
#include "text/tokenizer.h"

// Tokens and their logprobs in OpenAI's forms. `tokenizer` may be null everywhere.
namespace ingot::server {

// A token's text. One that is no whole characters is "bytes:\xe2\x80", and one that nobody can read
// "token_id:17", so that different tokens are different strings.
std::string token_text(const text::Tokenizer* tokenizer, int32_t id);

// Chats: {"token", "logprob", "bytes", "top_logprobs"}, with `num_top` at most of the latter.
base::json::object chat_logprob(const text::Tokenizer* tokenizer,
                                const engine::TokenLogprobs& logprobs, int32_t num_top);

// vLLM's "prompt_logprobs": null for the first token, then {"ID": {"logprob", "rank",
// "decoded_token"}} of each token and of `num_top` others at most. A rank beyond those is null.
base::json::array prompt_logprobs_json(const text::Tokenizer* tokenizer,
                                       std::span<const engine::TokenLogprobs> logprobs,
                                       int32_t num_top);

// Tokens of a text, one after another, and the logprobs that are known of them.
struct TextTokens {
  std::span<const int32_t> ids = {};
  // Of the last so many of them; the first token of a prompt has none.
  std::span<const engine::TokenLogprobs> logprobs = {};
  size_t num_prefix_ids = 0;  // the first of them, that are not in the text
};

// Completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"} of a text that consists
// of these parts. Offsets count characters. A token's own logprob is among the top ones, as one
// more where it would not be.
base::json::object completion_logprobs(const text::Tokenizer* tokenizer,
                                       std::span<const TextTokens> parts, int32_t num_top);

}  // namespace ingot::server
