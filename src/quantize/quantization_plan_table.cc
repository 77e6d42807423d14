#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/progress.h"
#include "quantize/quantization_plan.h"

namespace ingot::quantize {
namespace {

struct Row {
  size_t tensors = 0;
  uint64_t source_bytes = 0;
  uint64_t output_bytes = 0;
  std::vector<std::string_view> rules;  // each once, in the order of the file
};

void append_row(std::string& text, std::string_view module, std::string_view treatment,
                const Row& row) {
  fmt::format_to(std::back_inserter(text), "  {:<15} {:<12} {:>8} {:>9} -> {:>9}{}{}\n", module,
                 treatment, row.tensors, base::format_bytes(row.source_bytes),
                 base::format_bytes(row.output_bytes), row.rules.empty() ? "" : "  ",
                 fmt::join(row.rules, ", "));
}

}  // namespace

std::string describe(const QuantizationPlan& plan) {
  std::map<std::pair<model::ModuleClass, Treatment>, Row> rows;
  Row total = {.source_bytes = plan.source_bytes, .output_bytes = plan.output_bytes};
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      Row& row = rows[{tensor.parameter.module_class, tensor.treatment}];
      ++row.tensors;
      ++total.tensors;
      row.source_bytes += tensor.source.size_bytes();
      row.output_bytes += tensor.output_bytes;
      if (std::ranges::find(row.rules, tensor.rule) == row.rules.end()) {
        row.rules.push_back(tensor.rule);
      }
    }
  }
  std::string text = fmt::format("recipe {}: {}\n\n", plan.recipe.name, plan.recipe.description);
  fmt::format_to(std::back_inserter(text), "  {:<15} {:<12} {:>8} {:>9}    {:>9}  {}\n", "module",
                 "becomes", "tensors", "before", "after", "decided by");
  for (const auto& [key, row] : rows) append_row(text, name(key.first), name(key.second), row);
  append_row(text, "total", "", total);
  const size_t files = plan.shards.size();
  fmt::format_to(std::back_inserter(text), "\n  {} file{}, {:.1f} % of the source's bytes\n", files,
                 files == 1 ? "" : "s",
                 100.0 * static_cast<double>(plan.output_bytes) /
                     static_cast<double>(std::max<uint64_t>(plan.source_bytes, 1)));
  return text;
}

}  // namespace ingot::quantize
