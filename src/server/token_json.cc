#include "server/token_json.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "text/detokenizer.h"
#include "text/utf8.h"

namespace ingot::server {
namespace {

namespace json = base::json;
using engine::TokenLogprob;
using engine::TokenLogprobs;

std::span<const TokenLogprob> first(const std::vector<TokenLogprob>& top, int32_t num_top) {
  return std::span(top).first(std::min(top.size(), static_cast<size_t>(num_top)));
}

bool is_token(const text::Tokenizer* tokenizer, int32_t id) {
  return tokenizer != nullptr && tokenizer->has_token(id);
}

json::object token_logprob(const text::Tokenizer* tokenizer, const TokenLogprob& token) {
  json::value bytes = nullptr;
  if (is_token(tokenizer, token.id)) {
    json::array& numbers = bytes.emplace_array();
    for (const char byte : tokenizer->token_bytes(token.id)) {
      numbers.push_back(static_cast<uint8_t>(byte));
    }
  }
  return {{"token", token_text(tokenizer, token.id)},
          {"logprob", token.logprob},
          {"bytes", std::move(bytes)}};
}

size_t num_characters(std::string_view utf8) {
  return static_cast<size_t>(std::ranges::count_if(
      utf8, [](char byte) { return (static_cast<uint8_t>(byte) & 0xC0) != 0x80; }));
}

// Where tokens begin in a text, in characters. Bytes of one character begin where it does.
class OffsetCounter {
 public:
  explicit OffsetCounter(const text::Tokenizer* tokenizer) : tokenizer_(tokenizer) {
    if (tokenizer != nullptr) detokenizer_.emplace(*tokenizer, text::SpecialTokens::kKeep);
  }

  size_t next(int32_t id) {
    const size_t begin = num_characters_;
    if (is_token(tokenizer_, id)) {
      num_characters_ += num_characters(detokenizer_->push(id).value().text);
    }
    return begin;
  }
  // A text ends here, and another follows it.
  void finish() {
    if (detokenizer_) num_characters_ += num_characters(detokenizer_->finish());
  }

 private:
  const text::Tokenizer* tokenizer_;
  std::optional<text::Detokenizer> detokenizer_;
  size_t num_characters_ = 0;
};

json::object top_by_text(const text::Tokenizer* tokenizer, const TokenLogprobs& logprobs,
                         int32_t num_top) {
  json::object top;
  // What is there stays: of tokens with one spelling, the likelier.
  for (const TokenLogprob& token : first(logprobs.top, num_top)) {
    top.emplace(token_text(tokenizer, token.id), token.logprob);
  }
  top.emplace(token_text(tokenizer, logprobs.token.id), logprobs.token.logprob);
  return top;
}

}  // namespace

std::string token_text(const text::Tokenizer* tokenizer, int32_t id) {
  if (!is_token(tokenizer, id)) return fmt::format("token_id:{}", id);
  const std::string_view bytes = tokenizer->token_bytes(id);
  if (!text::find_invalid_utf8(bytes)) return std::string(bytes);
  std::string spelled = "bytes:";
  for (const char byte : bytes) spelled += fmt::format("\\x{:02x}", static_cast<uint8_t>(byte));
  return spelled;
}

json::object chat_logprob(const text::Tokenizer* tokenizer, const TokenLogprobs& logprobs,
                          int32_t num_top) {
  json::object entry = token_logprob(tokenizer, logprobs.token);
  json::array& top = entry["top_logprobs"].emplace_array();
  for (const TokenLogprob& token : first(logprobs.top, num_top)) {
    top.push_back(token_logprob(tokenizer, token));
  }
  return entry;
}

json::array prompt_logprobs_json(const text::Tokenizer* tokenizer,
                                 std::span<const TokenLogprobs> logprobs, int32_t num_top) {
  json::array list{nullptr};
  for (const TokenLogprobs& entry : logprobs) {
    json::object tokens;
    const auto add = [&](const TokenLogprob& token, json::value rank) {
      tokens.emplace(std::to_string(token.id),
                     json::object{{"logprob", token.logprob},
                                  {"rank", std::move(rank)},
                                  {"decoded_token", token_text(tokenizer, token.id)}});
    };
    int64_t rank = 0;
    for (const TokenLogprob& token : first(entry.top, num_top)) add(token, ++rank);
    const auto own = std::ranges::find(entry.top, entry.token.id, &TokenLogprob::id);
    add(entry.token,
        own == entry.top.end() ? json::value(nullptr) : json::value(own - entry.top.begin() + 1));
    list.push_back(std::move(tokens));
  }
  return list;
}

json::object completion_logprobs(const text::Tokenizer* tokenizer,
                                 std::span<const TextTokens> parts, int32_t num_top) {
  json::array tokens;
  json::array token_logprobs;
  json::array top_logprobs;
  json::array text_offset;
  OffsetCounter counter(tokenizer);
  for (const TextTokens& part : parts) {
    CHECK(part.logprobs.size() <= part.ids.size());
    const size_t num_unknown = part.ids.size() - part.logprobs.size();
    for (size_t i = 0; i < part.ids.size(); ++i) {
      tokens.emplace_back(token_text(tokenizer, part.ids[i]));
      text_offset.emplace_back(i < part.num_prefix_ids ? 0 : counter.next(part.ids[i]));
      if (i < num_unknown) {
        token_logprobs.emplace_back(nullptr);
        top_logprobs.emplace_back(nullptr);
        continue;
      }
      const TokenLogprobs& logprobs = part.logprobs[i - num_unknown];
      token_logprobs.emplace_back(logprobs.token.logprob);
      top_logprobs.emplace_back(top_by_text(tokenizer, logprobs, num_top));
    }
    counter.finish();
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(token_logprobs)},
          {"top_logprobs", std::move(top_logprobs)},
          {"text_offset", std::move(text_offset)}};
}

}  // namespace ingot::server
