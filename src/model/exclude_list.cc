#include "model/exclude_list.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include <fnmatch.h>

namespace ingot::model {
namespace {

// Bounds on the search for what somebody meant, so that a hostile list cannot make it long.
constexpr size_t kNearMissesMax = 128;
constexpr size_t kNearMissNameMax = 256;

bool is_pattern(std::string_view entry) {
  return entry.starts_with("re:") || entry.find_first_of("*?[") != std::string_view::npos;
}

bool is_quantized(const PlanRow& row) { return row.stored.scales != nullptr; }

std::string_view parent_of(std::string_view name) {
  const size_t dot = name.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : name.substr(0, dot);
}

// Everything that an exclude list may name: modules, their tensors, and the modules around them.
class ModuleIndex {
 public:
  explicit ModuleIndex(const std::vector<PlanRow>& rows) : list_(rows) {
    rows_.reserve(2 * rows.size());
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
    const std::string_view parent = parent_of(entry);
    std::string_view best;
    size_t best_distance = entry.size() - parent.size();
    const auto consider = [&](std::string_view name) {
      // "a.b.weights_proj" stands beside "a.b_proj" for a reader who forgot a level.
      const std::string_view above = parent_of(name);
      if (above != parent && parent_of(above) != parent) return;
      const size_t distance = name_distance(entry, name);
      if (distance < best_distance || (distance == best_distance && name < best)) {
        best = name;
        best_distance = distance;
      }
    };
    for (const PlanRow& row : list_) {
      if (!row.parameter.name.starts_with(parent)) continue;
      consider(row.parameter.name);
      consider(row.parameter.module());
    }
    return best;
  }

 private:
  void add(std::string_view name, const PlanRow* row) {
    if (!rows_.emplace(name, row).second) return;
    for (auto parent = parent_of(name); !parent.empty(); parent = parent_of(parent)) {
      if (!parents_.insert(parent).second) break;
    }
  }

  const std::vector<PlanRow>& list_;
  std::unordered_map<std::string_view, const PlanRow*> rows_;
  std::unordered_set<std::string_view> parents_;
};

// Which modules the list covers.
class Coverage {
 public:
  explicit Coverage(const std::vector<std::string>& entries) {
    for (const std::string& entry : entries) {
      if (is_pattern(entry)) {
        patterns_.push_back(&entry);
      } else {
        names_.insert(entry);
      }
    }
  }

  bool has_expressions() const {
    return std::ranges::any_of(patterns_, [](const auto* e) { return e->starts_with("re:"); });
  }

  // Whether an entry names the module or one around it, or matches it.
  bool covers(std::string_view module) const {
    for (auto name = module; !name.empty(); name = parent_of(name)) {
      if (names_.contains(name)) return true;
    }
    const std::string text(module);
    return std::ranges::any_of(
        patterns_, [&](const auto* e) { return ::fnmatch(e->c_str(), text.c_str(), 0) == 0; });
  }

 private:
  std::unordered_set<std::string_view> names_;
  std::vector<const std::string*> patterns_;
};

void report_unlisted(const ModelConfig& config, const std::vector<PlanRow>& rows,
                     std::vector<Finding>& findings) {
  const Coverage coverage(config.unquantized_modules);
  if (coverage.has_expressions() || std::ranges::none_of(rows, is_quantized)) return;
  for (const PlanRow& row : rows) {
    if (!row.parameter.is_linear() || is_quantized(row)) continue;
    if (coverage.covers(row.parameter.module())) continue;
    findings.push_back(
        {.severity = Severity::kWarning,
         .code = "unlisted_unquantized",
         .subject = std::string(row.parameter.module()),
         .message = fmt::format("stored as {}, and the list of unquantized modules in config.json "
                                "does not name it",
                                name(row.stored.format)),
         .remedy =
             "Ingot goes by the file; a loader that goes by the list expects it quantized, so "
             "add it there"});
  }
}

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
  report_unlisted(config, rows, findings);
}

}  // namespace ingot::model
