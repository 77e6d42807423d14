#include "quantize/loader_findings.h"

#include <algorithm>

#include <fmt/format.h>

namespace ingot::quantize {

void LoaderFindings::add(const Cause& cause, const LoaderModule& module,
                         const std::vector<const model::PlanRow*>& rows,
                         const std::string& example) {
  const std::string key = fmt::format("{}\n{}\n{}", cause.code, cause.what, cause.remedy);
  const auto [found, is_new] = index_.emplace(key, groups_.size());
  if (is_new) {
    groups_.push_back({.cause = cause, .first = module.published.front(), .example = example});
  }
  Group& group = groups_[found->second];
  ++group.num_modules;
  for (const model::PlanRow* row : rows) group.tensors.push_back(row->stored.data->name);
}

std::vector<LoaderFindings::Collected> LoaderFindings::take() {
  std::vector<Collected> findings;
  for (Group& group : groups_) {
    const size_t num_tensors = group.tensors.size();
    std::string count = num_tensors == 1 ? "" : fmt::format("{} tensors", num_tensors);
    if (group.num_modules > 1) count += fmt::format(" of {} modules", group.num_modules);
    findings.push_back(
        {.finding = {.severity = group.cause.severity,
                     .code = group.cause.code,
                     .subject = group.num_modules == 1 ? group.first : group.first + " and others",
                     .message = fmt::format("{}{}{}{}{}", count, count.empty() ? "" : ": ",
                                            group.cause.what, group.example.empty() ? "" : "; ",
                                            group.example),
                     .remedy = std::move(group.cause.remedy)},
         .tensors = std::move(group.tensors)});
  }
  groups_.clear();
  index_.clear();
  return findings;
}

std::string first_of_list(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(kShown, names.size()); ++i) {
    text += fmt::format("{}{:?}", i == 0 ? "" : ", ", names[i]);
  }
  if (names.size() > kShown) text += fmt::format(" and {} more", names.size() - kShown);
  return text;
}

}  // namespace ingot::quantize
