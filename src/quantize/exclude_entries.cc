#include "quantize/exclude_entries.h"

#include <algorithm>

namespace ingot::quantize {

ExcludeEntries::ExcludeEntries(std::vector<ExcludeEntry> entries, MatchBudget& budget)
    : entries_(std::move(entries)), used_(entries_.size()), budget_(&budget) {
  constexpr std::string_view kExpression = "re:";
  for (size_t i = 0; i < entries_.size(); ++i) {
    const std::string_view text = entries_[i].text;
    if (!text.starts_with(kExpression)) {
      exact_.emplace(text, i);
      sorted_.push_back(i);
      continue;
    }
    auto expression = PythonExpression::compile(text.substr(kExpression.size()));
    if (expression) {
      expressions_.push_back({i, *std::move(expression)});
    } else {
      problems_.push_back({entries_[i].origin, expression.error().message});
    }
  }
  std::ranges::sort(sorted_, {}, [&](size_t i) -> std::string_view { return entries_[i].text; });
}

const ExcludeEntry* ExcludeEntries::find(std::string_view name) {
  const ExcludeEntry* first = nullptr;
  if (const auto found = exact_.find(name); found != exact_.end()) {
    used_[found->second] = true;
    first = &entries_[found->second];
  }
  for (Expression& candidate : expressions_) {
    // One that was used already is asked only while nothing else has matched.
    if (candidate.given_up || (first != nullptr && used_[candidate.index])) continue;
    const auto outcome = candidate.expression.match(name, *budget_);
    if (outcome == PythonExpression::Outcome::kTooCostly) {
      candidate.given_up = true;
      problems_.push_back(
          {entries_[candidate.index].origin,
           fmt::format("{:?} takes very many steps on {}", entries_[candidate.index].text, name)});
    }
    if (outcome != PythonExpression::Outcome::kMatch) continue;
    used_[candidate.index] = true;
    if (first == nullptr) first = &entries_[candidate.index];
  }
  return first;
}

const ExcludeEntry* ExcludeEntries::find_below(std::string_view name) {
  const std::string prefix = std::string(name) + ".";
  const auto text_of = [&](size_t i) -> std::string_view { return entries_[i].text; };
  const ExcludeEntry* first = nullptr;
  for (auto at = std::ranges::lower_bound(sorted_, std::string_view(prefix), {}, text_of);
       at != sorted_.end() && text_of(*at).starts_with(prefix); ++at) {
    used_[*at] = true;
    if (first == nullptr) first = &entries_[*at];
  }
  return first;
}

}  // namespace ingot::quantize
