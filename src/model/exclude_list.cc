#include "model/exclude_list.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace ingot::model {
namespace {

// Bounds on the search for what somebody meant, so that a hostile list cannot make it long.
constexpr size_t kNearMissesMax = 128;
constexpr size_t kNearMissNameMax = 256;

bool is_pattern(std::string_view entry) {
  return entry.starts_with("re:") || entry.find_first_of("*?[") != std::string_view::npos;
}

bool is_quantized(const PlanRow& row) { return row.stored.scales != nullptr; }

// Everything that an exclude list may name: modules, their tensors, and the modules around them.
class ModuleIndex {
 public:
  explicit ModuleIndex(const std::vector<PlanRow>& rows) {
    for (const PlanRow& row : rows) {
      add(row.parameter.name, &row);
      add(row.parameter.module(), &row);
    }
  }

  bool has(std::string_view entry) const {
    return rows_.contains(entry) || parents_.contains(entry);
  }

  const PlanRow* row(std::string_view entry) const {
    const auto found = rows_.find(entry);
    return found == rows_.end() ? nullptr : found->second;
  }

  // The sibling with the most similar last part, when one is similar at all.
  std::string_view nearest(std::string_view entry) const {
    const auto [first, last] = siblings_.equal_range(parent_of(entry));
    std::string_view best;
    size_t best_distance = entry.size() - parent_of(entry).size();
    for (auto it = first; it != last; ++it) {
      const size_t distance = name_distance(entry, it->second);
      if (distance < best_distance || (distance == best_distance && it->second < best)) {
        best = it->second;
        best_distance = distance;
      }
    }
    return best;
  }

 private:
  static std::string_view parent_of(std::string_view name) {
    const size_t dot = name.rfind('.');
    return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
  }

  void add(std::string_view name, const PlanRow* row) {
    if (!rows_.emplace(name, row).second) return;
    // "a.b.weights_proj" stands beside "a.b_proj" for a reader who forgot a level.
    siblings_.emplace(parent_of(name), name);
    siblings_.emplace(parent_of(parent_of(name)), name);
    for (auto parent = parent_of(name); !parent.empty(); parent = parent_of(parent)) {
      if (!parents_.insert(parent).second) break;
    }
  }

  std::unordered_map<std::string_view, const PlanRow*> rows_;
  std::unordered_set<std::string_view> parents_;
  std::unordered_multimap<std::string_view, std::string_view> siblings_;
};

}  // namespace

size_t name_distance(std::string_view written, std::string_view existing) {
  constexpr size_t kInsert = 1;
  constexpr size_t kOmit = 2;
  std::vector<size_t> row(existing.size() + 1);
  for (size_t j = 0; j <= existing.size(); ++j) row[j] = j * kInsert;
  for (size_t i = 1; i <= written.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i * kOmit;
    for (size_t j = 1; j <= existing.size(); ++j) {
      const size_t kept = written[i - 1] == existing[j - 1] ? diagonal : diagonal + kOmit + kInsert;
      diagonal = row[j];
      row[j] = std::min({row[j] + kOmit, row[j - 1] + kInsert, kept});
    }
  }
  return row[existing.size()];
}

void compare_with_exclude_list(const ModelConfig& config, const std::vector<PlanRow>& rows,
                               std::vector<Finding>& findings) {
  if (config.unquantized_modules.empty()) return;
  const ModuleIndex index(rows);
  size_t num_dead = 0;
  for (const std::string& entry : config.unquantized_modules) {
    if (is_pattern(entry)) continue;
    if (!index.has(entry)) {
      const bool looks = ++num_dead <= kNearMissesMax && entry.size() <= kNearMissNameMax;
      const std::string_view nearest = looks ? index.nearest(entry) : std::string_view{};
      findings.push_back(
          {.severity = Severity::kWarning,
           .code = "dead_exclude_entry",
           .subject = entry,
           .message = "the list of unquantized modules in config.json names it and no such module "
                      "exists",
           .remedy = nearest.empty()
                         ? "Ingot goes by the file; other loaders may go by the list"
                         : fmt::format("perhaps {} is meant; Ingot goes by the file, other loaders "
                                       "may go by the list",
                                       nearest)});
      continue;
    }
    const PlanRow* row = index.row(entry);
    if (row == nullptr || !is_quantized(*row)) continue;
    findings.push_back({.severity = Severity::kWarning,
                        .code = "excluded_but_quantized",
                        .subject = entry,
                        .message = fmt::format("config.json lists it as unquantized and the file "
                                               "stores it as {}",
                                               name(row->stored.format)),
                        .remedy = "Ingot goes by the file; other loaders may go by the list"});
  }
}

}  // namespace ingot::model
