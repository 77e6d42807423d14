#include "text/detokenizer.h"

#include <string_view>

#include "text/utf8.h"

namespace ingot::text {
namespace {

bool continues_character(std::string_view bytes) {
  return (static_cast<uint8_t>(bytes.front()) & 0xC0) == 0x80;
}

}  // namespace

base::Result<DetokenizedText> Detokenizer::push(int32_t id) {
  if (!tokenizer_->has_token(id)) {
    return base::error("token {} is not in the vocabulary of {} tokens", id,
                       tokenizer_->vocabulary_size());
  }
  DetokenizedText result{.added_token = tokenizer_->added_token(id)};
  const bool is_special = result.added_token != nullptr && result.added_token->special;
  if (is_special && special_ == SpecialTokens::kSkip) return result;

  const std::string_view bytes = tokenizer_->token_bytes(id);
  // A character that cannot go on is lost, and belongs to the text before.
  if (!bytes.empty() && !continues_character(bytes)) result.text = finish();
  result.added_token_begin = result.text.size();
  incomplete_ += bytes;
  std::string_view rest = incomplete_;
  while (!rest.empty()) {
    const Utf8Unit unit = first_utf8_unit(rest);
    if (unit.kind == Utf8Kind::kIncomplete) break;
    const bool valid = unit.kind == Utf8Kind::kCharacter;
    result.text += valid ? rest.substr(0, unit.size_bytes) : kReplacementCharacter;
    rest.remove_prefix(unit.size_bytes);
  }
  incomplete_ = rest;
  if (result.added_token == nullptr) result.added_token_begin = result.text.size();
  return result;
}

std::string Detokenizer::finish() {
  if (incomplete_.empty()) return {};
  incomplete_.clear();
  return std::string(kReplacementCharacter);
}

}  // namespace ingot::text
