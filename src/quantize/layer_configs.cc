#include "quantize/layer_configs.h"

#include <algorithm>
#include <optional>

namespace ingot::quantize {

LayerConfigs::LayerConfigs(Loader loader, std::vector<LayerConfig> configs, MatchBudget& budget)
    : loader_(loader), configs_(std::move(configs)), budget_(&budget) {
  for (size_t i = 0; i < configs_.size(); ++i) {
    const std::string_view text = configs_[i].pattern;
    sorted_.push_back(i);
    if (is_pattern(text)) {
      patterns_.push_back(i);
      continue;
    }
    exact_.emplace(text, i);
    if (text.find("model.", 1) != std::string_view::npos) nested_.push_back(i);
  }
  std::ranges::sort(sorted_, {}, [&](size_t i) -> std::string_view { return configs_[i].pattern; });
}

bool LayerConfigs::is_pattern(std::string_view text) const {
  return loader_ == Loader::kVllm ? text.contains('*') : is_glob(text);
}

const LayerConfig* LayerConfigs::find(std::string_view name) const {
  std::optional<size_t> first;
  const auto consider = [&](size_t index) { first = std::min(first.value_or(index), index); };
  if (const auto found = exact_.find(name); found != exact_.end()) consider(found->second);
  for (const size_t index : patterns_) {
    if (first && index > *first) break;
    if (glob_matches(configs_[index].pattern, name, *budget_)) consider(index);
  }
  if (loader_ == Loader::kVllm) {
    const auto text_of = [&](size_t i) -> std::string_view { return configs_[i].pattern; };
    for (auto at = std::ranges::lower_bound(sorted_, name, {}, text_of);
         at != sorted_.end() && text_of(*at).starts_with(name); ++at) {
      if (!is_pattern(text_of(*at))) consider(*at);
    }
    for (const size_t index : nested_) {
      const std::string_view text = configs_[index].pattern;
      budget_->steps_left -= std::min(budget_->steps_left, text.size());
      if (budget_->steps_left == 0) break;
      if (text.contains(name)) consider(index);
    }
  }
  return first ? &configs_[*first] : nullptr;
}

std::vector<const LayerConfig*> LayerConfigs::below(std::string_view name) const {
  const std::string prefix = std::string(name) + ".";
  const auto text_of = [&](size_t i) -> std::string_view { return configs_[i].pattern; };
  std::vector<const LayerConfig*> found;
  for (auto at = std::ranges::lower_bound(sorted_, std::string_view(prefix), {}, text_of);
       at != sorted_.end() && text_of(*at).starts_with(prefix); ++at) {
    found.push_back(&configs_[*at]);
  }
  return found;
}

}  // namespace ingot::quantize
