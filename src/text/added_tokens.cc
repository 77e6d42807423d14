#include "text/added_tokens.h"

#include <algorithm>

#include <utf8proc.h>

#include "text/utf8.h"

namespace ingot::text {
namespace {

// Unicode's White_Space.
bool is_white_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// A character of a word by Unicode TR 18: alphabetic, mark, decimal number, connector or joiner.
bool is_word_character(char32_t c) {
  // Letters in circles and squares are alphabetic symbols.
  const bool enclosed_letter = (c >= 0x24B6 && c <= 0x24E9) || (c >= 0x1F130 && c <= 0x1F149) ||
                               (c >= 0x1F150 && c <= 0x1F169) || (c >= 0x1F170 && c <= 0x1F189);
  if (enclosed_letter || c == 0x200C || c == 0x200D) return true;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return false;
  }
}

// Where the character before `end` begins. REQUIRES: end > 0.
size_t previous_character(std::string_view text, size_t end) {
  size_t begin = end - 1;
  while ((static_cast<uint8_t>(text[begin]) & 0xC0) == 0x80) --begin;
  return begin;
}

bool stands_alone(std::string_view text, const AddedTokenMatch& match) {
  if (match.begin > 0) {
    const size_t before = previous_character(text, match.begin);
    if (is_word_character(first_code_point(text.substr(before)))) return false;
  }
  return match.end == text.size() || !is_word_character(first_code_point(text.substr(match.end)));
}

}  // namespace

AddedTokenFinder::AddedTokenFinder(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::ranges::sort(tokens_, {}, &AddedToken::content);
  for (const AddedToken& token : tokens_) {
    begins_token_[static_cast<uint8_t>(token.content.front())] = true;
  }
}

const AddedToken* AddedTokenFinder::longest_at(std::string_view text) const {
  const AddedToken* longest = nullptr;
  // The tokens that begin as the text does, narrowed byte by byte; the shortest stands first.
  std::span<const AddedToken> candidates = tokens_;
  for (size_t length = 0; length < text.size(); ++length) {
    const auto byte_at = [length](const AddedToken& token) {
      return static_cast<uint8_t>(token.content[length]);
    };
    const auto same =
        std::ranges::equal_range(candidates, static_cast<uint8_t>(text[length]), {}, byte_at);
    candidates = {same.begin(), same.end()};
    if (candidates.empty()) break;
    if (candidates.front().content.size() == length + 1) {
      longest = &candidates.front();
      candidates = candidates.subspan(1);
    }
  }
  return longest;
}

std::vector<AddedTokenMatch> AddedTokenFinder::find(std::string_view text,
                                                    std::span<const TextSpan> allowed) const {
  std::vector<AddedTokenMatch> matches;
  size_t taken = 0;  // the end of the last match
  for (const TextSpan& span : allowed) {
    const std::string_view part = text.substr(0, span.end);
    for (size_t at = span.begin; at < span.end; ++at) {
      if (!begins_token_[static_cast<uint8_t>(text[at])]) continue;
      const AddedToken* token = longest_at(part.substr(at));
      if (token == nullptr) continue;
      AddedTokenMatch match{.begin = at, .end = at + token->content.size(), .id = token->id};
      at = match.end - 1;
      if (token->single_word && !stands_alone(text, match)) continue;
      while (token->lstrip && match.begin > taken) {
        const size_t before = previous_character(text, match.begin);
        if (before < taken || !is_white_space(first_code_point(text.substr(before)))) break;
        match.begin = before;
      }
      while (token->rstrip && match.end < text.size() &&
             is_white_space(first_code_point(text.substr(match.end)))) {
        match.end += first_utf8_unit(text.substr(match.end)).size_bytes;
      }
      taken = match.end;
      matches.push_back(match);
    }
  }
  return matches;
}

}  // namespace ingot::text
