#include "quantize/quantization_report.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/progress.h"
#include "model/config_reader.h"
#include "quantize/line_of_text.h"
#include "quantize/quantization_manifest.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;
using kernels::RoundingStatistics;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr double kLargest = std::numeric_limits<double>::max();
constexpr double kLargestF32 = std::numeric_limits<float>::max();

json::object to_json(const TensorRounding& rounding) {
  json::object scale_bytes;
  for (const auto& [byte, num_blocks] : rounding.scale_bytes) {
    scale_bytes[std::to_string(byte)] = num_blocks;
  }
  return {{"num_values", rounding.num_values},
          {"relative_rms_error", rounding.statistics().relative_rms_error()},
          {"error_max", rounding.error_max},
          {"magnitude_max", rounding.magnitude_max},
          {"sum_squares", rounding.sum_squares},
          {"sum_squared_errors", rounding.sum_squared_errors},
          {"num_blocks", rounding.num_blocks},
          {"num_zero_blocks", rounding.num_zero_blocks},
          {"num_clipped", rounding.num_clipped},
          {"scale_bytes", std::move(scale_bytes)}};
}

base::Status read_scale_bytes(model::ConfigReader& reader, RoundingStatistics& rounding) {
  const json::object* bytes = TRY(reader.object("scale_bytes"));
  if (bytes == nullptr) return base::error("{}: \"scale_bytes\" is missing", reader.source());
  model::ConfigReader counts(*bytes, reader.source());
  for (const auto& entry : *bytes) {
    const std::string_view key(entry.key().data(), entry.key().size());
    uint8_t byte = 0;
    const auto read = std::from_chars(key.data(), key.data() + key.size(), byte);
    if (read.ec != std::errc{} || read.ptr != key.data() + key.size()) {
      return base::error("{}: {} is no scale byte", reader.source(), shown_line(key));
    }
    rounding.scale_bytes[byte] = static_cast<uint64_t>(TRY(counts.integer(key, 0, kMost)));
  }
  return {};
}

base::Result<TensorRounding> rounding_from_json(const json::object& object,
                                                std::string_view source) {
  model::ConfigReader reader(object, std::string(source));
  RoundingStatistics rounding;
  const auto count = [&](std::string_view key) -> base::Result<uint64_t> {
    return static_cast<uint64_t>(TRY(reader.integer(key, 0, kMost)));
  };
  rounding.num_values = TRY(count("num_values"));
  rounding.num_blocks = TRY(count("num_blocks"));
  rounding.num_zero_blocks = TRY(count("num_zero_blocks"));
  rounding.num_clipped = TRY(count("num_clipped"));
  rounding.sum_squares = TRY(reader.number("sum_squares", 0, kLargest));
  rounding.sum_squared_errors = TRY(reader.number("sum_squared_errors", 0, kLargest));
  rounding.error_max = static_cast<float>(TRY(reader.number("error_max", 0, kLargestF32)));
  rounding.magnitude_max = static_cast<float>(TRY(reader.number("magnitude_max", 0, kLargestF32)));
  TRY(read_scale_bytes(reader, rounding));
  return TensorRounding::of(rounding);
}

std::optional<model::ModuleClass> module_class_named(std::string_view text) {
  for (size_t i = 0; i < model::kModuleClasses; ++i) {
    const auto module_class = static_cast<model::ModuleClass>(i);
    if (name(module_class) == text) return module_class;
  }
  return std::nullopt;
}

std::string share(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.3f}%", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string line(std::string_view module, std::string_view treatment, const ClassReport& row) {
  const RoundingStatistics& rounding = row.rounding;
  const bool rounded = rounding.num_values > 0;
  const bool blocks = rounding.num_blocks > 0;
  return fmt::format("  {:<15} {:<11} {:>7} {:>10} {:>10} {:>9} {:>10} {:>8} {:>11}\n", module,
                     treatment, row.num_tensors, base::format_bytes(row.source_bytes),
                     base::format_bytes(row.output_bytes),
                     rounded ? fmt::format("{:.5f}", rounding.relative_rms_error()) : "-",
                     rounded ? fmt::format("{:.3g}", rounding.error_max) : "-",
                     blocks ? share(rounding.num_clipped, rounding.num_values) : "-",
                     blocks ? fmt::format("{}", rounding.num_zero_blocks) : "-");
}

std::string worst_tensors(const QuantizationReport& report, size_t count) {
  std::vector<std::pair<double, const TensorReport*>> rounded;
  for (const TensorReport& tensor : report.tensors) {
    if (tensor.rounding.num_values == 0) continue;
    rounded.emplace_back(tensor.rounding.statistics().relative_rms_error(), &tensor);
  }
  std::ranges::stable_sort(rounded, std::ranges::greater{},
                           &std::pair<double, const TensorReport*>::first);
  if (rounded.size() > count) rounded.resize(count);
  if (rounded.empty()) return "";
  std::string text = fmt::format("\n  {:<9} {:>10}  {}\n", "rms error", "largest", "worst tensors");
  for (const auto& [error, tensor] : rounded) {
    text +=
        fmt::format("  {:<9.5f} {:>10.3g}  {}\n", error, tensor->rounding.error_max, tensor->name);
  }
  return text;
}

}  // namespace

TensorRounding TensorRounding::of(const RoundingStatistics& statistics) {
  TensorRounding rounding{.num_values = statistics.num_values,
                          .num_blocks = statistics.num_blocks,
                          .num_zero_blocks = statistics.num_zero_blocks,
                          .num_clipped = statistics.num_clipped,
                          .sum_squares = statistics.sum_squares,
                          .sum_squared_errors = statistics.sum_squared_errors,
                          .error_max = statistics.error_max,
                          .magnitude_max = statistics.magnitude_max,
                          .scale_bytes = {}};
  const auto& counts = statistics.scale_bytes;
  rounding.scale_bytes.reserve(counts.size() -
                               static_cast<size_t>(std::ranges::count(counts, uint64_t{0})));
  for (size_t byte = 0; byte < counts.size(); ++byte) {
    if (counts[byte] == 0) continue;
    rounding.scale_bytes.push_back({static_cast<uint8_t>(byte), counts[byte]});
  }
  return rounding;
}

RoundingStatistics TensorRounding::statistics() const {
  RoundingStatistics all;
  all.num_values = num_values;
  all.num_blocks = num_blocks;
  all.num_zero_blocks = num_zero_blocks;
  all.num_clipped = num_clipped;
  all.sum_squares = sum_squares;
  all.sum_squared_errors = sum_squared_errors;
  all.error_max = error_max;
  all.magnitude_max = magnitude_max;
  for (const auto& [byte, blocks] : scale_bytes) all.scale_bytes[byte] = blocks;
  return all;
}

base::Result<std::optional<QuantizationReport>> read_report(const std::filesystem::path& directory,
                                                            size_t num_tensors) {
  const std::filesystem::path path = directory / kManifestName;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  return TRY(read_manifest(path, num_tensors))
  .report();
}

std::vector<ClassReport> classes_of(const QuantizationReport& report) {
  std::map<std::pair<model::ModuleClass, Treatment>, ClassReport> classes;
  for (const TensorReport& tensor : report.tensors) {
    ClassReport& row = classes[{tensor.module_class, tensor.treatment}];
    ++row.num_tensors;
    row.source_bytes += tensor.source_bytes;
    row.output_bytes += tensor.output_bytes;
    row.rounding.add(tensor.rounding.statistics());
  }
  std::vector<ClassReport> rows;
  for (auto& [key, row] : classes) {
    std::tie(row.module_class, row.treatment) = key;
    rows.push_back(row);
  }
  return rows;
}

json::array classes_json(const QuantizationReport& report) {
  json::array rows;
  for (const ClassReport& row : classes_of(report)) {
    json::object object{{"module", name(row.module_class)},
                        {"treatment", name(row.treatment)},
                        {"num_tensors", row.num_tensors},
                        {"source_bytes", row.source_bytes},
                        {"output_bytes", row.output_bytes}};
    if (row.treatment != Treatment::kKeep) {
      object["rounding"] = to_json(TensorRounding::of(row.rounding));
    }
    rows.push_back(std::move(object));
  }
  return rows;
}

json::object to_json(const TensorReport& tensor) {
  json::object object{{"name", tensor.name},
                      {"module", name(tensor.module_class)},
                      {"treatment", name(tensor.treatment)},
                      {"source_bytes", tensor.source_bytes},
                      {"output_bytes", tensor.output_bytes},
                      {"source_hash", tensor.source_hash}};
  if (tensor.treatment != Treatment::kKeep) object["rounding"] = to_json(tensor.rounding);
  return object;
}

base::Result<TensorReport> tensor_report_from_json(const json::value& value,
                                                   std::string_view source) {
  if (!value.is_object()) return base::error("{}: a tensor is no object", source);
  model::ConfigReader reader(value.get_object(), std::string(source));
  TensorReport tensor;
  tensor.name = TRY(reader.string_or("name", ""));
  tensor.source_hash = TRY(reader.string_or("source_hash", ""));
  const auto module_class = module_class_named(TRY(reader.string_or("module", "")));
  const auto treatment = find_treatment(TRY(reader.string_or("treatment", "")));
  if (!is_line_of_text(tensor.name) || !is_hash(tensor.source_hash) || !module_class ||
      !treatment) {
    return base::error("{}: tensor {} lacks its name, hash, module or treatment", source,
                       shown_line(tensor.name));
  }
  tensor.module_class = *module_class;
  tensor.treatment = *treatment;
  tensor.source_bytes = static_cast<uint64_t>(TRY(reader.integer("source_bytes", 0, kMost)));
  tensor.output_bytes = static_cast<uint64_t>(TRY(reader.integer("output_bytes", 0, kMost)));
  const json::object* rounding = TRY(reader.object("rounding"));
  if ((rounding != nullptr) != (tensor.treatment != Treatment::kKeep)) {
    return base::error("{}: tensor {} has a rounding that does not fit its treatment", source,
                       shown_line(tensor.name));
  }
  if (rounding != nullptr) tensor.rounding = TRY(rounding_from_json(*rounding, source));
  return tensor;
}

std::string describe(const QuantizationReport& report, size_t worst) {
  const std::vector<ClassReport> rows = classes_of(report);
  ClassReport total;
  for (const ClassReport& row : rows) {
    total.num_tensors += row.num_tensors;
    total.source_bytes += row.source_bytes;
    total.output_bytes += row.output_bytes;
  }
  std::string text = fmt::format("  recipe {}, FP8 sources through {}, scales by {}{}\n\n",
                                 report.recipe, report.dequantization, report.scale_search,
                                 report.complete ? "" : "; interrupted, not complete");
  text += fmt::format("  {:<15} {:<11} {:>7} {:>10} {:>10} {:>9} {:>10} {:>8} {:>11}\n", "module",
                      "treatment", "tensors", "before", "after", "rms error", "largest", "clipped",
                      "zero blocks");
  for (const ClassReport& row : rows) {
    text += line(name(row.module_class), name(row.treatment), row);
  }
  // Without errors: formats are not comparable.
  return text + line("total", "", total) + worst_tensors(report, worst);
}

}  // namespace ingot::quantize
