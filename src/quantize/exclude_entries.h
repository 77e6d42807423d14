#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "quantize/python_pattern.h"

namespace ingot::quantize {

// An entry of quantization_config.exclude as a loader holds it: the text that it matches, which
// may be another than the file's when the loader renames modules, and its place in the file's list.
struct ExcludeEntry {
  std::string text;
  size_t origin;
};

// The entries that one model of a loader, main or draft, looks names up in. An entry is an exact
// name or, after "re:", a regular expression.
class ExcludeEntries {
 public:
  // What is wrong with the entry at `origin`.
  struct Problem {
    size_t origin;
    std::string text;
  };

  // Keeps a pointer to `budget`.
  ExcludeEntries(std::vector<ExcludeEntry> entries, MatchBudget& budget);

  // The first entry that equals or matches the name.
  const ExcludeEntry* find(std::string_view name);
  // The first entry of a module inside this one: it begins with the name and a dot.
  const ExcludeEntry* find_below(std::string_view name);

  const std::vector<ExcludeEntry>& entries() const { return entries_; }
  // Whether an entry was ever found, by its index in entries().
  bool is_used(size_t index) const { return used_[index]; }
  // Expressions that do not compile or that took too long; both match nothing from then on.
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  struct Expression {
    size_t index;  // in entries_
    PythonExpression expression;
    bool given_up = false;
  };

  std::vector<ExcludeEntry> entries_;
  std::vector<bool> used_;
  std::unordered_map<std::string_view, size_t> exact_;
  std::vector<size_t> sorted_;  // indices of the exact entries, by text
  std::vector<Expression> expressions_;
  std::vector<Problem> problems_;
  MatchBudget* budget_;
};

}  // namespace ingot::quantize
