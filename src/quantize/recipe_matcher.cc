#include "quantize/recipe_matcher.h"

#include <algorithm>

#include <fmt/format.h>
#include <fnmatch.h>

namespace ingot::quantize {
namespace {

// Bounds on the search for what somebody meant, so that a strange recipe cannot make it long.
constexpr size_t kPatternBytesMax = 256;

std::string with_mtp_layer(std::string pattern, int64_t mtp_layer) {
  constexpr std::string_view kMtp = "{mtp}";
  const std::string layer = std::to_string(mtp_layer);
  for (size_t at = pattern.find(kMtp); at != std::string::npos; at = pattern.find(kMtp, at)) {
    pattern.replace(at, kMtp.size(), layer);
    at += layer.size();
  }
  return pattern;
}

std::string_view nearest(std::string_view pattern, std::span<const std::string> modules) {
  if (pattern.size() > kPatternBytesMax) return {};
  std::string_view best;
  size_t best_distance = SIZE_MAX;
  for (const std::string& module : modules) {
    const size_t distance = pattern_distance(pattern, module);
    if (distance >= best_distance) continue;
    best = module;
    best_distance = distance;
  }
  return best;
}

}  // namespace

RecipeMatcher::RecipeMatcher(const Recipe& recipe, int64_t mtp_layer) : recipe_name_(recipe.name) {
  for (const RecipeRule& rule : recipe.rules) {
    entries_.push_back({.rule = &rule, .pattern = with_mtp_layer(rule.pattern, mtp_layer)});
  }
}

const RecipeRule* RecipeMatcher::decide(const std::string& module) {
  Entry* first = nullptr;
  for (Entry& entry : entries_) {
    // Later rules are only asked whether they match anything at all.
    if (first != nullptr && entry.matched) continue;
    if (::fnmatch(entry.pattern.c_str(), module.c_str(), 0) != 0) continue;
    entry.matched = true;
    if (first == nullptr) first = &entry;
  }
  if (first == nullptr) return nullptr;
  first->decided = true;
  return first->rule;
}

base::Status RecipeMatcher::check_every_rule_decided(std::span<const std::string> modules) const {
  for (const Entry& entry : entries_) {
    if (entry.decided || entry.rule->optional) continue;
    if (entry.matched) {
      return base::error(
          "recipe {}: rules before it decide every module that \"{}\" matches; move it up or "
          "remove it",
          recipe_name_, entry.rule->pattern);
    }
    const std::string_view near = nearest(entry.pattern, modules);
    return base::error(
        "recipe {}: \"{}\" matches no linear layer of this model{}; correct it, or write "
        "\"optional = true\" if it may match nothing",
        recipe_name_, entry.rule->pattern,
        near.empty() ? "" : fmt::format(", the nearest is {}", near));
  }
  return {};
}

size_t pattern_distance(std::string_view pattern, std::string_view name) {
  std::vector<size_t> row(name.size() + 1);
  for (size_t j = 0; j <= name.size(); ++j) row[j] = j;
  for (const char c : pattern) {
    size_t diagonal = row[0];
    row[0] += c == '*' ? 0 : 1;
    for (size_t j = 1; j <= name.size(); ++j) {
      const size_t above = row[j];
      if (c == '*') {
        row[j] = std::min(above, row[j - 1]);
      } else {
        const bool same = c == name[j - 1] || c == '?';
        row[j] = std::min({diagonal + (same ? 0 : 1), above + 1, row[j - 1] + 1});
      }
      diagonal = above;
    }
  }
  return row[name.size()];
}

}  // namespace ingot::quantize
