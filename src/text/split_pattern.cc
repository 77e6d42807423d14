#include "text/split_pattern.h"

#include <array>
#include <span>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/check.h"
#include "text/split_syntax.h"
#include "text/unicode_stand_ins.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

// Steps that one match may take: a run of white space takes one a byte.
constexpr uint32_t kMatchLimit = 50'000'000;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> message{};
  pcre2_get_error_message(code, message.data(), message.size());
  return reinterpret_cast<const char*>(message.data());
}

}  // namespace

void SplitPattern::Free::operator()(pcre2_code* code) const { pcre2_code_free(code); }

void SplitPattern::Workspace::Free::operator()(pcre2_match_data* data) const {
  pcre2_match_data_free(data);
}

void SplitPattern::Workspace::Free::operator()(pcre2_match_context* context) const {
  pcre2_match_context_free(context);
}

SplitPattern::Workspace::Workspace()
    : data_(pcre2_match_data_create(1, nullptr)), context_(pcre2_match_context_create(nullptr)) {
  CHECK(data_ != nullptr && context_ != nullptr, "out of memory");
  pcre2_set_match_limit(context_.get(), kMatchLimit);
}

base::Result<SplitPattern> SplitPattern::compile(std::string_view pattern,
                                                 std::string_view source) {
  TRY(check_split_syntax(pattern, source));
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                       PCRE2_UTF | PCRE2_UCP, &code, &offset, nullptr);
  if (compiled == nullptr) {
    return base::error(
        "{}: {:?} is not a regular expression: {} at byte {}; download the file again", source,
        pattern, pcre2_message(code), offset);
  }
  SplitPattern split(compiled, pattern);
  uint32_t matches_nothing = 0;
  pcre2_pattern_info(compiled, PCRE2_INFO_MATCHEMPTY, &matches_nothing);
  if (matches_nothing != 0) {
    return base::error("{}: {:?} can match without taking a character; every match must take one",
                       source, pattern);
  }
  code = pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  if (code != 0) {
    return base::error("{}: {:?}: cannot be compiled to machine code: {}", source, pattern,
                       pcre2_message(code));
  }
  return split;
}

base::Result<std::optional<TextSpan>> SplitPattern::find(std::string_view subject, size_t from,
                                                         Workspace& workspace) const {
  // Without PCRE2_NO_UTF_CHECK every match would validate the rest of the text again.
  const int code =
      pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(subject.data()), subject.size(), from,
                  PCRE2_NO_UTF_CHECK, workspace.data_.get(), workspace.context_.get());
  if (code == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (code < 0) {
    return base::error("the tokenizer's pattern {:?} gave up at byte {} of {}: {}", pattern_, from,
                       subject.size(), pcre2_message(code));
  }
  const PCRE2_SIZE* ends = pcre2_get_ovector_pointer(workspace.data_.get());
  return TextSpan{ends[0], ends[1]};
}

std::optional<std::string> with_stand_ins(std::string_view text) {
  std::optional<std::string> replaced;
  for (size_t at = 0; at < text.size();) {
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    if (unit.size_bytes >= 3) {
      if (const auto stand_in = stand_in_of(first_code_point(text.substr(at)))) {
        if (!replaced) replaced = text;
        std::string character;
        append_utf8(character, *stand_in);
        replaced->replace(at, character.size(), character);
      }
    }
    at += unit.size_bytes;
  }
  return replaced;
}

}  // namespace ingot::text
