#include "text/split_syntax.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "text/unicode_stand_ins.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

using base::Status;

constexpr std::array<std::string_view, 31> kCategories = {
    "L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M", "Mn", "Mc", "Me", "N",  "Nd", "Nl", "No", "P", "Pc",
    "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "S", "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl", "Zp"};

// Pairs of letters that are one character's case folding: ß, the ligatures.
constexpr std::array<std::string_view, 5> kFoldings = {"ss", "st", "ff", "fi", "fl"};

constexpr char32_t kNoCharacter = 0x110000;

bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

class SyntaxChecker {
 public:
  SyntaxChecker(std::string_view pattern, std::string_view source)
      : pattern_(pattern), source_(source) {}

  Status check() {
    while (at_ < pattern_.size()) TRY(check_item());
    return {};
  }

 private:
  // What a quantifier may come after.
  enum class Atom { kNone, kCharacter, kGroup };
  struct Group {
    bool caseless = false;
    bool lookahead = false;
  };

  template <typename... Args>
  std::unexpected<base::Error> refuse(fmt::format_string<Args...> format, Args&&... args) const {
    return base::error(
        "{}: byte {} of pattern {:?}: {} has no one meaning to all engines that "
        "read such files, so Ingot does not run it",
        source_, at_, pattern_, fmt::format(format, std::forward<Args>(args)...));
  }

  // Of the character at a byte, 0 at the end: errors show whole characters.
  size_t size_of_character(size_t at) const {
    return at < pattern_.size() ? first_utf8_unit(pattern_.substr(at)).size_bytes : 0;
  }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }
  bool caseless() const { return !groups_.empty() && groups_.back().caseless; }

  Status check_item() {
    const char c = pattern_[at_];
    if (c == '(') return open_group();
    if (c == ')') return close_group();
    if (c == '|') return take_bar();
    if (c == '[') return check_class();
    if (c == '?' || c == '*' || c == '+' || c == '{') return check_quantifier();
    if (c == '^' || c == '$' || c == '.') return refuse("{:?}", c);
    [[maybe_unused]] const char32_t character = TRY(take_character());
    atom_ = Atom::kCharacter;
    return {};
  }

  Status open_group() {
    Group group{.caseless = caseless()};
    if (next_is("(?i:")) {
      group.caseless = true;
      at_ += 4;
    } else if (next_is("(?:")) {
      at_ += 3;
    } else if (next_is("(?=") || next_is("(?!")) {
      group.lookahead = true;
      at_ += 3;
    } else if (next_is("(?") || next_is("(*")) {
      return refuse("a group that begins with {:?}",
                    pattern_.substr(at_, 2 + size_of_character(at_ + 2)));
    } else {
      ++at_;
    }
    groups_.push_back(group);
    atom_ = Atom::kNone;
    previous_ = 0;
    return {};
  }

  Status close_group() {
    if (groups_.empty()) return refuse("an unmatched ')'");
    atom_ = groups_.back().lookahead ? Atom::kNone : Atom::kGroup;
    groups_.pop_back();
    previous_ = 0;
    ++at_;
    return {};
  }

  Status take_bar() {
    atom_ = Atom::kNone;
    previous_ = 0;
    ++at_;
    return {};
  }

  Status check_quantifier() {
    if (atom_ == Atom::kNone) return refuse("a quantifier after nothing that it can repeat");
    const char c = pattern_[at_];
    if (atom_ == Atom::kGroup && c != '?') return refuse("a repeated group");
    if (c == '{') {
      TRY(take_bounds());
    } else {
      ++at_;
      if (next_is("?") || next_is("+")) ++at_;
    }
    atom_ = Atom::kNone;
    previous_ = 0;
    return {};
  }

  // {n}, {n,} or {n,m}; a ? or + behind it, which the engines take differently, is then refused
  // as a quantifier of nothing.
  Status take_bounds() {
    const size_t close = pattern_.find('}', at_);
    if (close == std::string_view::npos) return refuse("'{{' without '}}'");
    const std::string_view bounds = pattern_.substr(at_ + 1, close - at_ - 1);
    const size_t comma = std::min(bounds.find(','), bounds.size());
    const auto is_number = [](std::string_view text) {
      return !text.empty() && text.size() <= 4 &&
             text.find_first_not_of("0123456789") == std::string_view::npos;
    };
    const std::string_view upper = bounds.substr(std::min(comma + 1, bounds.size()));
    if (!is_number(bounds.substr(0, comma)) || !(upper.empty() || is_number(upper))) {
      return refuse("'{{{}}}'", bounds);
    }
    at_ = close + 1;
    return {};
  }

  Status check_class() {
    ++at_;
    if (next_is("^")) ++at_;
    if (next_is("]")) return refuse("an empty class");
    const size_t begin = at_;
    char32_t range_begin = kNoCharacter;
    while (!next_is("]")) {
      if (at_ == pattern_.size()) return refuse("a class without an end");
      if (next_is("[")) return refuse("'[' in a class");
      if (next_is("&&")) return refuse("'&&' in a class");
      if (next_is("-") && at_ != begin && !next_is("-]")) {
        if (range_begin == kNoCharacter) return refuse("a range that begins with a class");
        ++at_;
        const char32_t range_end = TRY(take_character());
        if (range_end == kNoCharacter) return refuse("a range that ends in a class");
        TRY(check_named(range_begin, range_end));
        range_begin = kNoCharacter;
      } else {
        range_begin = TRY(take_character());
      }
      previous_ = 0;
    }
    ++at_;
    atom_ = Atom::kCharacter;
    return {};
  }

  // One character or escape, in or out of a class. Returns the character that it names, or
  // kNoCharacter for an escape that stands for many.
  base::Result<char32_t> take_character() {
    if (next_is("\\")) return take_escape();
    if (at_ == pattern_.size()) return refuse("an end here");
    const char32_t character = first_code_point(pattern_.substr(at_));
    TRY(check_literal(character));
    at_ += first_utf8_unit(pattern_.substr(at_)).size_bytes;
    return character;
  }

  base::Result<char32_t> take_escape() {
    const char c = at_ + 1 < pattern_.size() ? pattern_[at_ + 1] : '\0';
    if (c == 'p' || c == 'P') return take_property();
    if (c == 'x') return take_hexadecimal();
    constexpr std::string_view kControls = "rntf";
    constexpr std::string_view kControlCharacters = "\r\n\t\f";
    char32_t character = kNoCharacter;
    if (const size_t control = kControls.find(c); control != std::string_view::npos) {
      character = static_cast<char32_t>(kControlCharacters[control]);
    } else if (is_punctuation(c)) {
      character = static_cast<char32_t>(c);
    } else if (c != 's' && c != 'S' && c != 'd' && c != 'D') {
      return refuse("{:?}", pattern_.substr(at_, 1 + size_of_character(at_ + 1)));
    }
    at_ += 2;
    previous_ = 0;
    return character;
  }

  base::Result<char32_t> take_property() {
    const size_t close = pattern_.find('}', at_);
    const bool braced = at_ + 2 < pattern_.size() && pattern_[at_ + 2] == '{';
    if (!braced || close == std::string_view::npos) return refuse("\\p without a name in braces");
    const std::string_view name = pattern_.substr(at_ + 3, close - at_ - 3);
    if (std::ranges::find(kCategories, name) == kCategories.end())
      return refuse("property {:?}", name);
    if (caseless()) return refuse("a property where case is ignored");
    at_ = close + 1;
    previous_ = 0;
    return kNoCharacter;
  }

  base::Result<char32_t> take_hexadecimal() {
    const size_t close = pattern_.find('}', at_);
    if (!pattern_.substr(at_).starts_with("\\x{") || close == std::string_view::npos) {
      return refuse("\\x without braces");
    }
    const std::string_view digits = pattern_.substr(at_ + 3, close - at_ - 3);
    uint32_t value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    const bool is_character = value <= 0x10FFFF && !(value >= 0xD800 && value < 0xE000);
    if (digits.empty() || read.ec != std::errc{} || read.ptr != digits.data() + digits.size() ||
        !is_character) {
      return refuse("\\x{{{}}}", digits);
    }
    const auto character = static_cast<char32_t>(value);
    TRY(check_literal(character));
    at_ = close + 1;
    return character;
  }

  Status check_literal(char32_t character) {
    if (caseless()) {
      if (character > 0x7F) return refuse("a character beyond ASCII where case is ignored");
      const char lower = static_cast<char>(character | 0x20);
      const std::array<char, 2> pair = {previous_, lower};
      const bool folds =
          std::ranges::find(kFoldings, std::string_view(pair.data(), 2)) != kFoldings.end();
      if (folds) return refuse("{:?} where case is ignored", std::string_view(pair.data(), 2));
      previous_ = lower;
    }
    return check_named(character, character);
  }

  // Stand-ins keep a character's class and not its name.
  Status check_named(char32_t first, char32_t last) const {
    for (const StandIn& row : stand_ins()) {
      const bool has_all = first <= row.first && row.last <= last;
      const bool has_some = first <= row.last && row.first <= last;
      const bool has_stand_in = first <= row.stand_in && row.stand_in <= last;
      if (has_stand_in ? !has_all : has_some) {
        return refuse("a character between U+{:04X} and U+{:04X} named as such",
                      static_cast<uint32_t>(first), static_cast<uint32_t>(last));
      }
    }
    return {};
  }

  std::string_view pattern_;
  std::string_view source_;
  size_t at_ = 0;
  Atom atom_ = Atom::kNone;
  std::vector<Group> groups_;
  char previous_ = 0;  // the letter before, where case is ignored
};

}  // namespace

Status check_split_syntax(std::string_view pattern, std::string_view source) {
  if (const auto invalid = find_invalid_utf8(pattern)) {
    return base::error("{}: byte {} of a pattern is not UTF-8; download the file again", source,
                       *invalid);
  }
  return SyntaxChecker(pattern, source).check();
}

}  // namespace ingot::text
