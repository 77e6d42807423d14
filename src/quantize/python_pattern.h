#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct pcre2_real_code_8;

namespace ingot::quantize {

// How Python matches the names of modules: the loaders are Python programs.

// Steps that matching may still take, counted over all names and patterns of one check, so that a
// hostile list ends as soon on every machine.
struct MatchBudget {
  uint64_t steps_left = 20'000'000;
};

// A regular expression as Python's re.match reads it: anchored at the start, free at the end.
// Immutable, movable.
class PythonExpression {
 public:
  // Errors: syntax that Python refuses, or that PCRE2, which runs it, might read otherwise
  // (look-behind, back references, named groups, POSIX classes and the like).
  static base::Result<PythonExpression> compile(std::string_view expression);

  enum class Outcome : uint8_t {
    kNoMatch,
    kMatch,
    kTooCostly,  // more steps than are reasonable for a name, or than the budget has
  };
  Outcome match(std::string_view name, MatchBudget& budget) const;

 private:
  struct Free {
    void operator()(pcre2_real_code_8* code) const;
  };

  explicit PythonExpression(pcre2_real_code_8* code) : code_(code) {}

  std::unique_ptr<pcre2_real_code_8, Free> code_;
};

// fnmatch.fnmatch: *, ?, [set] and [!set] over the whole name; nothing escapes. Charges the budget
// with the steps it took; false when nothing is left.
bool glob_matches(std::string_view pattern, std::string_view name, MatchBudget& budget);

// Whether a pattern is more than its own text to fnmatch.
bool is_glob(std::string_view pattern);

}  // namespace ingot::quantize
