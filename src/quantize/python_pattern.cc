#include "quantize/python_pattern.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/check.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

namespace ingot::quantize {
namespace {

constexpr auto npos = std::string_view::npos;

// Steps for one name. Names have some 60 characters; what needs more than this runs away.
constexpr uint64_t kStepsPerNameMax = 100'000;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Walks over an expression and says what in it is not read alike by Python and PCRE2.
class SyntaxCheck {
 public:
  explicit SyntaxCheck(std::string_view text) : text_(text) {}

  // What is not understood; none when all is.
  std::optional<std::string> problem() {
    while (at_ < text_.size()) {
      if (auto problem = step()) return problem;
    }
    return std::nullopt;
  }

 private:
  bool has(std::string_view part) const { return text_.substr(at_).starts_with(part); }

  std::optional<std::string> step() {
    const char c = text_[at_];
    if (c == '\\') return escape();
    if (c == '[') return set();
    if (c == '(') return group();
    if (c == '*' || c == '+' || c == '?') return quantifier(1);
    if (c == '{') return braces();
    ++at_;
    after_quantifier_ = false;
    return std::nullopt;
  }

  // Letters and digits after a backslash mean something; everything else means itself.
  std::optional<std::string> escape() {
    constexpr std::string_view kKnown = "dDwWsSbBA";
    const std::string_view whole = text_.substr(at_, 2);
    if (whole.size() < 2) return "a backslash at the end";
    const char c = whole[1];
    const bool alphanumeric = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c);
    // fnmatch.translate ends with \Z, which is PCRE2's \z.
    const bool end = c == 'Z' && at_ + 2 == text_.size();
    if (alphanumeric && !end && !kKnown.contains(c)) return std::string(whole);
    at_ += 2;
    after_quantifier_ = false;
    return std::nullopt;
  }

  std::optional<std::string> set() {
    at_ += has("[^") ? 2 : 1;
    if (has("]")) ++at_;
    while (at_ < text_.size() && text_[at_] != ']') {
      if (has("[:") || has("[.") || has("[=") || has("-\\") || has("--") || has("&&") ||
          has("||") || has("~~")) {
        return fmt::format("{:?} in a set", text_.substr(at_, 2));
      }
      if (text_[at_] == '\\') {
        if (has("\\b") || has("\\A") || has("\\B")) return "an assertion in a set";
        if (auto problem = escape()) return problem;
      } else {
        ++at_;
      }
    }
    if (at_ == text_.size()) return "a set without its end";
    ++at_;
    after_quantifier_ = false;
    return std::nullopt;
  }

  std::optional<std::string> group() {
    constexpr std::string_view kKnown[] = {"(?:", "(?=", "(?!", "(?s:", "(?i:"};
    after_quantifier_ = false;
    if (has("(*")) return "(*";
    if (!has("(?")) {
      ++at_;
      return std::nullopt;
    }
    if (at_ == 0 && (has("(?i)") || has("(?s)"))) {
      at_ += 4;
      return std::nullopt;
    }
    for (const std::string_view known : kKnown) {
      if (!has(known)) continue;
      at_ += known.size();
      return std::nullopt;
    }
    return std::string(text_.substr(at_, 4));
  }

  std::optional<std::string> quantifier(size_t length) {
    if (after_quantifier_) return "a quantifier after a quantifier";
    at_ += length;
    if (has("?") || has("+")) ++at_;
    after_quantifier_ = true;
    return std::nullopt;
  }

  // {2}, {2,} and {2,3} are quantifiers for both; other braces are text for one of them.
  std::optional<std::string> braces() {
    size_t end = at_ + 1;
    while (end < text_.size() && is_digit(text_[end])) ++end;
    const bool counts = end > at_ + 1 && end - at_ <= 4;
    if (counts && end < text_.size() && text_[end] == ',') {
      for (++end; end < text_.size() && is_digit(text_[end]);) ++end;
    }
    if (!counts || end == text_.size() || text_[end] != '}') return "braces that are no count";
    return quantifier(end + 1 - at_);
  }

  std::string_view text_;
  size_t at_ = 0;
  bool after_quantifier_ = false;
};

struct StepCount {
  uint64_t taken = 0;
  uint64_t allowed = 0;
};

// PCRE2 calls it before every item of an expression that it tries.
int count_step(pcre2_callout_block*, void* data) {
  auto* count = static_cast<StepCount*>(data);
  return ++count->taken > count->allowed ? PCRE2_ERROR_CALLOUT : 0;
}

// What a [set] at `at` says of `c`, and where it ends; a bracket that nothing closes is text.
struct SetResult {
  bool matches;
  size_t end;
};

SetResult match_set(std::string_view pattern, size_t at, char c) {
  size_t first = at + 1;
  const bool negated = first < pattern.size() && pattern[first] == '!';
  if (negated) ++first;
  const size_t close = pattern.find(']', std::min(first + 1, pattern.size()));
  if (close == npos) return {c == '[', at + 1};
  bool found = false;
  for (size_t i = first; i < close; ++i) {
    const bool range = i + 2 < close && pattern[i + 1] == '-';
    found = found || (range ? pattern[i] <= c && c <= pattern[i + 2] : pattern[i] == c);
    if (range) i += 2;
  }
  return {found != negated, close + 1};
}

}  // namespace

void PythonExpression::Free::operator()(pcre2_code* code) const { pcre2_code_free(code); }

base::Result<PythonExpression> PythonExpression::compile(std::string_view expression) {
  if (const auto problem = SyntaxCheck(expression).problem()) {
    return base::error("{:?} has {}", expression, *problem);
  }
  std::string text(expression);
  if (text.ends_with("\\Z")) text.back() = 'z';
  int code = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* compiled = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(),
                                       PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED | PCRE2_AUTO_CALLOUT,
                                       &code, &offset, nullptr);
  if (compiled == nullptr) {
    std::array<PCRE2_UCHAR, 256> message{};
    pcre2_get_error_message(code, message.data(), message.size());
    return base::error("{:?} has an error at byte {}: {}", expression, offset,
                       reinterpret_cast<const char*>(message.data()));
  }
  return PythonExpression(compiled);
}

PythonExpression::Outcome PythonExpression::match(std::string_view name,
                                                  MatchBudget& budget) const {
  StepCount count{.allowed = std::min(kStepsPerNameMax, budget.steps_left)};
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  CHECK(context != nullptr && data != nullptr, "out of memory");
  pcre2_set_callout(context, count_step, &count);
  const int code = pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(name.data()), name.size(),
                               0, 0, data, context);
  pcre2_match_data_free(data);
  pcre2_match_context_free(context);
  // One step more than those counted, so that no list is free.
  budget.steps_left -= std::min(budget.steps_left, count.taken + 1);
  if (code >= 0) return Outcome::kMatch;
  return code == PCRE2_ERROR_NOMATCH ? Outcome::kNoMatch : Outcome::kTooCostly;
}

bool glob_matches(std::string_view pattern, std::string_view name, MatchBudget& budget) {
  size_t p = 0;
  size_t n = 0;
  size_t star = npos;  // the last *, and where the name went on after it
  size_t after_star = 0;
  while (true) {
    if (budget.steps_left == 0) return false;
    --budget.steps_left;
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      after_star = n;
      continue;
    }
    if (n == name.size() && p == pattern.size()) return true;
    if (n < name.size() && p < pattern.size()) {
      const char c = pattern[p];
      const SetResult one =
          c == '[' ? match_set(pattern, p, name[n]) : SetResult{c == '?' || c == name[n], p + 1};
      if (one.matches) {
        p = one.end;
        ++n;
        continue;
      }
    }
    if (star == npos || after_star == name.size()) return false;
    p = star + 1;
    n = ++after_star;
  }
}

bool is_glob(std::string_view pattern) { return pattern.find_first_of("*?[") != npos; }

}  // namespace ingot::quantize
