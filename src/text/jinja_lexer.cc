#include "text/jinja_lexer.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "text/code_points.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

using Kind = JinjaToken::Kind;
constexpr auto npos = std::string_view::npos;

std::string with_line_feeds(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      text += source[i];
    } else if (i + 1 == source.size() || source[i + 1] != '\n') {
      text += '\n';
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  TemplateResult<std::vector<JinjaToken>> run() {
    while (at_ < source_.size()) TRY(lex_text());
    push(Kind::kEnd, "", at_);
    return std::move(tokens_);
  }

 private:
  struct Tag {
    size_t open = npos;     // of the brace
    size_t content = npos;  // behind the brace, the letter and the sign
    char letter = 0;        // '{', '%', '#', or 'r' for a raw block
    char sign = 0;          // '-', '+' or none
  };

  std::unexpected<TemplateError> failure(size_t at, std::string_view what) {
    return syntax_error(position_of(at), what);
  }

  // Tokens come in order, so that each place is found from the one before; an error may go back.
  TemplatePosition position_of(size_t at) {
    if (at < counted_) {
      counted_ = 0;
      position_ = {};
    }
    while (counted_ < at) {
      const bool ends_line = source_[counted_] == '\n';
      next_code_point(source_, counted_);
      position_ = ends_line ? TemplatePosition{position_.line + 1, 1}
                            : TemplatePosition{position_.line, position_.column + 1};
    }
    return position_;
  }

  void push(Kind kind, std::string text, size_t at) {
    tokens_.push_back({kind, std::move(text), position_of(at)});
  }

  size_t skip_space(size_t at) const { return at + leading_space(source_.substr(at)); }
  bool starts_with(size_t at, std::string_view text) const {
    return source_.substr(at).starts_with(text);
  }

  Tag next_tag() const {
    for (size_t open = source_.find('{', at_); open != npos; open = source_.find('{', open + 1)) {
      const char letter = open + 1 < source_.size() ? source_[open + 1] : '\0';
      if (letter != '{' && letter != '%' && letter != '#') continue;
      Tag tag{.open = open, .content = open + 2, .letter = letter, .sign = 0};
      const char sign = tag.content < source_.size() ? source_[tag.content] : '\0';
      if (sign == '-' || sign == '+') {
        tag.sign = sign;
        ++tag.content;
      }
      if (letter == '%') {
        if (const auto behind = raw_begin_end(tag.content)) {
          tag.letter = 'r';
          tag.content = *behind;
        }
      }
      return tag;
    }
    return {};
  }

  // Behind "raw %}", when that is what comes.
  std::optional<size_t> raw_begin_end(size_t at) const {
    at = skip_space(at);
    if (!starts_with(at, "raw")) return std::nullopt;
    at = skip_space(at + 3);
    if (starts_with(at, "%}")) return at + 2;
    if (starts_with(at, "-%}")) return skip_space(at + 3);
    return std::nullopt;
  }

  // The text before a tag at `end`, as its sign and the settings leave it.
  void push_text(size_t begin, size_t end, char sign, bool strips_indentation) {
    std::string_view text = source_.substr(begin, end - begin);
    if (sign == '-') {
      text.remove_suffix(trailing_space(text));
    } else if (sign != '+' && strips_indentation) {
      const size_t line_start = text.rfind('\n') + 1;
      const bool at_line_start = line_start > 0 || line_starting_;
      if (at_line_start && leading_space(text.substr(line_start)) == text.size() - line_start) {
        text = text.substr(0, line_start);
      }
    }
    if (!text.empty()) push(Kind::kText, std::string(text), begin);
  }

  void move_to(size_t at) {
    if (at > at_) line_starting_ = source_[at - 1] == '\n';
    at_ = at;
  }

  TemplateResult<void> lex_text() {
    const Tag tag = next_tag();
    if (tag.letter == 0) {
      push(Kind::kText, std::string(source_.substr(at_)), at_);
      move_to(source_.size());
      return {};
    }
    push_text(at_, tag.open, tag.sign, tag.letter != '{');
    move_to(tag.content);
    switch (tag.letter) {
      case '#':
        return lex_comment(tag.open);
      case 'r':
        return lex_raw(tag.open);
      case '{':
        push(Kind::kVariableBegin, "{{", tag.open);
        return lex_tag(Kind::kVariableEnd, "}}");
      default:
        push(Kind::kBlockBegin, "{%", tag.open);
        return lex_tag(Kind::kBlockEnd, "%}");
    }
  }

  // Behind a closing mark, which takes the newline behind it, or with '-' all white space.
  size_t behind_end(size_t at, size_t length, char sign) const {
    at += length;
    if (sign == '-') return skip_space(at);
    if (sign != '+' && at < source_.size() && source_[at] == '\n') return at + 1;
    return at;
  }

  TemplateResult<void> lex_comment(size_t open) {
    const size_t end = source_.find("#}", at_);
    if (end == npos) return failure(open, "this comment has no end; close it with #}");
    const char before = end > at_ ? source_[end - 1] : '\0';
    move_to(behind_end(end, 2, before));
    return {};
  }

  TemplateResult<void> lex_raw(size_t open) {
    for (size_t tag = source_.find("{%", at_); tag != npos; tag = source_.find("{%", tag + 1)) {
      size_t at = tag + 2;
      const char sign = at < source_.size() ? source_[at] : '\0';
      if (sign == '-' || sign == '+') ++at;
      at = skip_space(at);
      if (!starts_with(at, "endraw")) continue;
      at = skip_space(at + 6);
      const char end_sign = at < source_.size() ? source_[at] : '\0';
      if (end_sign == '-' || end_sign == '+') ++at;
      if (!starts_with(at, "%}")) continue;
      push_text(at_, tag, sign, true);
      move_to(behind_end(at, 2, end_sign));
      return {};
    }
    return failure(open, "this raw block has no end; close it with {% endraw %}");
  }

  // The tokens up to the closing mark, which counts only outside of brackets.
  TemplateResult<void> lex_tag(Kind end_kind, std::string_view end_mark) {
    const size_t open = at_;
    brackets_.clear();
    while (at_ < source_.size()) {
      const size_t behind_space = skip_space(at_);
      if (behind_space > at_) {
        move_to(behind_space);
        continue;
      }
      const char c = source_[at_];
      const bool signed_end =
          (c == '-' || (c == '+' && end_kind == Kind::kBlockEnd)) && starts_with(at_ + 1, end_mark);
      if (brackets_.empty() && (signed_end || starts_with(at_, end_mark))) {
        push(end_kind, std::string(end_mark), at_);
        // {{ }} leaves the newline behind it alone.
        const char sign = signed_end ? c : end_kind == Kind::kVariableEnd ? '+' : '\0';
        move_to(behind_end(at_ + (signed_end ? 1 : 0), 2, sign));
        return {};
      }
      TRY(lex_token());
    }
    return failure(open, fmt::format("this tag has no end; close it with {}", end_mark));
  }

  TemplateResult<void> lex_token() {
    const char c = source_[at_];
    if (is_digit(c)) return lex_number();
    if (is_word(c)) {
      size_t end = at_;
      while (end < source_.size() && is_word(source_[end])) ++end;
      push(Kind::kName, std::string(source_.substr(at_, end - at_)), at_);
      move_to(end);
      return {};
    }
    if (c == '\'' || c == '"') return lex_string();
    return lex_operator();
  }

  // Behind digits that single underscores may part.
  template <typename IsDigit>
  size_t digits_end(size_t at, IsDigit is_one) const {
    while (at < source_.size()) {
      const bool parted = source_[at] == '_' && at + 1 < source_.size() && is_one(source_[at + 1]);
      if (!parted && !is_one(source_[at])) break;
      at += parted ? 2 : 1;
    }
    return at;
  }

  // Behind the point and the exponent, if they make the digits that end at `at` a float.
  size_t float_end(size_t at) const {
    size_t end = at;
    if (at + 1 < source_.size() && source_[at] == '.' && is_digit(source_[at + 1])) {
      end = digits_end(at + 1, is_digit);
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
      if (digits < source_.size() && is_digit(source_[digits])) {
        end = digits_end(digits, is_digit);
      }
    }
    return end;
  }

  TemplateResult<void> lex_number() {
    size_t end = digits_end(at_, is_digit);
    const bool behind_point = at_ > 0 && source_[at_ - 1] == '.';
    const size_t end_of_float = behind_point ? end : float_end(end);
    const bool is_float = end_of_float > end;
    const bool other_base = source_[at_] == '0' && end == at_ + 1 && end < source_.size() &&
                            std::string_view("xXoObB").contains(source_[end]);
    if (other_base) {
      return failure(at_, "numbers are decimal here; write it without a base prefix");
    }
    if (is_float) end = end_of_float;
    std::string digits(source_.substr(at_, end - at_));
    std::erase(digits, '_');
    if (!is_float && digits.size() > 1 && digits.find_first_not_of('0') != 0) {
      if (digits.find_first_not_of('0') != std::string::npos) {
        return failure(at_, "a number does not start with 0");
      }
      digits = "0";
    }
    push(is_float ? Kind::kFloat : Kind::kInteger, std::move(digits), at_);
    move_to(end);
    return {};
  }

  TemplateResult<void> lex_string() {
    const char quote = source_[at_];
    const size_t open = at_;
    std::string text;
    size_t at = at_ + 1;
    while (at < source_.size() && source_[at] != quote) {
      if (source_[at] == '\\') {
        TRY(lex_escape(text, at));
      } else {
        text += source_[at++];
      }
    }
    if (at >= source_.size()) return failure(open, "this string has no end");
    push(Kind::kString, std::move(text), open);
    move_to(at + 1);
    return {};
  }

  // One escape of Python's, from the backslash at `at`, which moves behind it.
  TemplateResult<void> lex_escape(std::string& text, size_t& at) {
    constexpr std::string_view kLetters = "\\'\"abfnrtv\n";
    constexpr std::array<std::string_view, 11> kMeanings = {"\\", "'",  "\"", "\a", "\b", "\f",
                                                            "\n", "\r", "\t", "\v", ""};
    const size_t start = at++;
    if (at == source_.size()) return failure(start, "this string has no end");
    const char c = source_[at];
    if (const size_t letter = kLetters.find(c); letter != npos) {
      text += kMeanings[letter];
      ++at;
      return {};
    }
    if (c == 'x') return lex_code(text, start, at, 16, 2);
    if (c == 'u') return lex_code(text, start, at, 16, 4);
    if (c == 'U') return lex_code(text, start, at, 16, 8);
    if (c >= '0' && c <= '7') {
      const size_t digits = source_.substr(at, 3).find_first_not_of("01234567");
      --at;  // there is no letter before the digits
      return lex_code(text, start, at, 8, std::min(digits, source_.size() - at - 1));
    }
    if (c == 'N' || (static_cast<unsigned char>(c) & 0x80U) != 0) {
      return failure(start, "an escape that is not supported; write the character itself");
    }
    text += '\\';
    return {};
  }

  TemplateResult<void> lex_code(std::string& text, size_t start, size_t& at, int base,
                                size_t num_digits) {
    num_digits = std::min<size_t>(num_digits, base == 8 ? 3 : 8);
    const std::string_view digits = source_.substr(at + 1, num_digits);
    uint32_t code_point = 0;
    const auto read =
        std::from_chars(digits.data(), digits.data() + digits.size(), code_point, base);
    if (digits.size() < num_digits || read.ptr != digits.data() + digits.size()) {
      return failure(start, "an escape with too few digits");
    }
    if (code_point > 0x10FFFF || (code_point >= 0xD800 && code_point <= 0xDFFF)) {
      return failure(start, "an escape that is no character; write the character itself");
    }
    append_utf8(text, code_point);
    at += 1 + num_digits;
    return {};
  }

  TemplateResult<void> lex_operator() {
    constexpr std::array<std::string_view, 6> kPairs = {"//", "**", "==", "!=", ">=", "<="};
    constexpr std::string_view kSingles = "+-/*%~[](){}><=.:|,;";
    for (const std::string_view pair : kPairs) {
      if (!starts_with(at_, pair)) continue;
      push(Kind::kOperator, std::string(pair), at_);
      move_to(at_ + 2);
      return {};
    }
    const char c = source_[at_];
    if (!kSingles.contains(c)) {
      size_t end = at_;
      next_code_point(source_, end);
      return failure(at_, fmt::format("unexpected character '{}'", source_.substr(at_, end - at_)));
    }
    if (c == '(' || c == '[' || c == '{') {
      brackets_ += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      if (brackets_.empty() || brackets_.back() != c) {
        return failure(at_, fmt::format("'{}' closes nothing", c));
      }
      brackets_.pop_back();
    }
    push(Kind::kOperator, std::string(1, c), at_);
    move_to(at_ + 1);
    return {};
  }

  std::string_view source_;
  size_t at_ = 0;
  size_t counted_ = 0;  // the byte that position_ is of
  TemplatePosition position_;
  bool line_starting_ = true;
  std::string brackets_;
  std::vector<JinjaToken> tokens_;
};

}  // namespace

std::unexpected<TemplateError> syntax_error(TemplatePosition position, std::string_view what) {
  TemplateError failure;
  failure.kind = TemplateError::Kind::kSyntax;
  failure.line = position.line;
  failure.reason = fmt::format("column {}: {}", position.column, what);
  return std::unexpected(std::move(failure));
}

TemplateResult<std::vector<JinjaToken>> lex_jinja(std::string_view source) {
  if (find_invalid_utf8(source)) return syntax_error({}, "not UTF-8; save the template as UTF-8");
  const std::string text = with_line_feeds(source);
  return Lexer(text).run();
}

}  // namespace ingot::text
