#include "quantize/quantization_manifest.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/mapped_file.h"
#include "base/output_file.h"
#include "model/config_reader.h"
#include "quantize/line_of_text.h"
#include "quantize/source_hash.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;

constexpr std::string_view kSchema = "ingot.quantization/1";
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

bool same_rule(const RecipeRule& a, const RecipeRule& b) {
  return a.pattern == b.pattern && a.treatment == b.treatment && a.optional == b.optional;
}

json::array rules_json(const std::vector<RecipeRule>& rules) {
  json::array array;
  for (const RecipeRule& rule : rules) {
    array.push_back(json::object{{"pattern", rule.pattern},
                                 {"treatment", name(rule.treatment)},
                                 {"optional", rule.optional}});
  }
  return array;
}

json::object to_json(const SourceFile& file) {
  return {{"name", file.name},
          {"size_bytes", file.size_bytes},
          {"modified_ns", file.modified_ns},
          {"changed_ns", file.changed_ns},
          {"inode", file.inode}};
}

json::object to_json(const FinishedShard& shard) {
  json::array sources;
  for (const SourceFile& file : shard.sources) {
    sources.push_back(to_json(file));
  }
  json::array tensors;
  for (const TensorReport& tensor : shard.tensors) tensors.push_back(to_json(tensor));
  return {{"file", shard.file_name},
          {"file_bytes", shard.file_bytes},
          {"sources", std::move(sources)},
          {"tensors", std::move(tensors)}};
}

// The array under a key, each of whose elements `read` takes.
template <typename Read>
base::Status read_array(model::ConfigReader& reader, std::string_view key, const Read& read) {
  const json::value* value = reader.find(key);
  if (value == nullptr || !value->is_array()) {
    return base::error("{}: \"{}\" is missing or no list", reader.source(), key);
  }
  for (const json::value& element : value->get_array()) TRY(read(element));
  return {};
}

base::Result<model::ConfigReader> reader_of(const json::value& value, std::string_view source) {
  if (!value.is_object()) return base::error("{}: an object is missing", source);
  return model::ConfigReader(value.get_object(), std::string(source));
}

// A text that may be shown as it is.
base::Result<std::string> required_line(model::ConfigReader& reader, std::string_view key) {
  std::string text = TRY(reader.string_or(key, ""));
  if (is_line_of_text(text)) return text;
  return base::error("{}: \"{}\" is missing or no line of text", reader.source(), key);
}

base::Result<std::string> required_file_name(model::ConfigReader& reader, std::string_view key) {
  std::string name = TRY(required_line(reader, key));
  if (!name.contains('/') && name != "." && name != "..") return name;
  return base::error("{}: \"{}\" is {} and no name of a file", reader.source(), key,
                     shown_line(name));
}

base::Result<std::string> required_choice(model::ConfigReader& reader, std::string_view key,
                                          std::initializer_list<std::string_view> known) {
  std::string text = TRY(required_line(reader, key));
  if (std::ranges::find(known, text) != known.end()) return text;
  return base::error("{}: \"{}\" is {}; it is one of {}", reader.source(), key, shown_line(text),
                     fmt::join(known, ", "));
}

bool is_hexadecimal(std::string_view text) {
  return std::ranges::all_of(
      text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

base::Result<RecipeRule> parse_rule(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  RecipeRule rule;
  rule.pattern = TRY(required_line(reader, "pattern"));
  rule.optional = TRY(reader.boolean_or("optional", false));
  const std::string treatment = TRY(reader.string_or("treatment", ""));
  const auto known = find_treatment(treatment);
  if (!known) {
    return base::error("{}: unknown treatment {}", source, shown_line(treatment));
  }
  rule.treatment = *known;
  return rule;
}

base::Result<SourceFile> parse_source_file(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  SourceFile file;
  file.name = TRY(required_file_name(reader, "name"));
  file.size_bytes = static_cast<uint64_t>(TRY(reader.integer("size_bytes", 0, kMost)));
  file.modified_ns = TRY(reader.integer("modified_ns", kLeast, kMost));
  file.changed_ns = TRY(reader.integer("changed_ns", kLeast, kMost));
  file.inode = TRY(reader.integer("inode", kLeast, kMost));
  return file;
}

base::Result<FinishedShard> parse_shard(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  FinishedShard shard;
  shard.file_name = TRY(required_file_name(reader, "file"));
  shard.file_bytes = static_cast<uint64_t>(TRY(reader.integer("file_bytes", 0, kMost)));
  TRY(read_array(reader, "sources", [&](const json::value& file) -> base::Status {
    shard.sources.push_back(TRY(parse_source_file(file, source)));
    return {};
  }));
  TRY(read_array(reader, "tensors", [&](const json::value& tensor) -> base::Status {
    shard.tensors.push_back(TRY(tensor_report_from_json(tensor, source)));
    return {};
  }));
  return shard;
}

base::Result<RunIdentity> parse_identity(model::ConfigReader& reader) {
  RunIdentity identity;
  const std::string& source = reader.source();
  identity.dequantization = TRY(required_choice(reader, "dequant", {"fp32", "bf16"}));
  identity.scale_search = TRY(required_choice(reader, "scale_search", {"even", "mse"}));
  identity.layout_hash = TRY(required_line(reader, "layout_hash"));
  identity.rounding_version =
      static_cast<uint64_t>(TRY(reader.integer("rounding_version", 1, kMost)));
  const json::object* recipe = TRY(reader.object("recipe"));
  const json::object* origin = TRY(reader.object("source"));
  if (recipe == nullptr || origin == nullptr) {
    return base::error("{}: \"recipe\" or \"source\" is missing", source);
  }
  model::ConfigReader recipe_reader(*recipe, source);
  identity.recipe = TRY(required_line(recipe_reader, "name"));
  TRY(read_array(recipe_reader, "rules", [&](const json::value& rule) -> base::Status {
    if (identity.rules.size() == kRulesMax) return base::error("{}: too many rules", source);
    identity.rules.push_back(TRY(parse_rule(rule, source)));
    return {};
  }));
  model::ConfigReader origin_reader(*origin, source);
  identity.model_hash = TRY(required_line(origin_reader, "model_hash"));
  TRY(read_array(origin_reader, "files", [&](const json::value& value) -> base::Status {
    identity.source_files.push_back(TRY(parse_source_file(value, source)));
    return {};
  }));
  if (!is_hexadecimal(identity.model_hash) || !is_hash(identity.layout_hash)) {
    return base::error("{}: \"model_hash\" or \"layout_hash\" is no hash", source);
  }
  return identity;
}

base::Result<QuantizationManifest> parse(const json::value& document, std::string_view source,
                                         size_t rows_max) {
  model::ConfigReader reader = TRY(reader_of(document, source));
  const std::string schema = TRY(reader.string_or("schema", ""));
  if (schema != kSchema) {
    return base::error("{}: its schema is {} and this build reads {}", source, shown_line(schema),
                       kSchema);
  }
  QuantizationManifest manifest;
  manifest.identity = TRY(parse_identity(reader));
  manifest.num_shards = static_cast<uint64_t>(TRY(reader.integer("num_shards", 0, kMost)));
  std::set<std::string> names;
  size_t num_rows = 0;
  TRY(read_array(reader, "shards", [&](const json::value& value) -> base::Status {
    FinishedShard shard = TRY(parse_shard(value, source));
    num_rows += shard.tensors.size();
    if (num_rows > rows_max) return base::error("{}: more rows than tensors", source);
    if (!names.insert(shard.file_name).second) {
      return base::error("{}: {} is listed twice", source, shard.file_name);
    }
    manifest.shards.push_back(std::move(shard));
    return {};
  }));
  return manifest;
}

// All but the shards.
void add_head_to(json::object& document, const QuantizationManifest& manifest) {
  const RunIdentity& identity = manifest.identity;
  json::array files;
  for (const SourceFile& file : identity.source_files) files.push_back(to_json(file));
  document["source"] =
      json::object{{"model_hash", identity.model_hash}, {"files", std::move(files)}};
  document["recipe"] =
      json::object{{"name", identity.recipe}, {"rules", rules_json(identity.rules)}};
  document["rounding_version"] = identity.rounding_version;
  document["dequant"] = identity.dequantization;
  document["scale_search"] = identity.scale_search;
  document["layout_hash"] = identity.layout_hash;
  document["num_shards"] = manifest.num_shards;
}

}  // namespace

std::string difference(const RunIdentity& there, const RunIdentity& here) {
  const auto same_file = [](const SourceFile& a, const SourceFile& b) {
    return a.name == b.name && a.size_bytes == b.size_bytes;
  };
  if (!std::ranges::equal(there.source_files, here.source_files, same_file)) {
    return "the source's files have other names or sizes";
  }
  if (there.model_hash != here.model_hash) {
    return fmt::format("the source's config or headers differ (model hash {} there, {} here)",
                       there.model_hash, here.model_hash);
  }
  if (!std::ranges::equal(there.rules, here.rules, same_rule)) {
    return fmt::format("the recipe differs ({} there, {} here)", there.recipe, here.recipe);
  }
  if (there.dequantization != here.dequantization) {
    return fmt::format("--dequant was {} there and is {} here", there.dequantization,
                       here.dequantization);
  }
  if (there.scale_search != here.scale_search) {
    return fmt::format("--scale-search was {} there and is {} here", there.scale_search,
                       here.scale_search);
  }
  if (there.rounding_version != here.rounding_version) {
    return "another version of Ingot rounded otherwise";
  }
  if (there.layout_hash != here.layout_hash) return "another version of Ingot laid out the files";
  return "";
}

std::string layout_hash(const QuantizationPlan& plan) {
  SourceHash hash;
  const auto add = [&](const std::string& text) {
    hash.update(std::as_bytes(std::span(text)));
    hash.update(std::as_bytes(std::span("\n", 1)));
  };
  for (const PlannedShard& shard : plan.shards) {
    add(shard.file_name);
    for (const PlannedTensor& planned : shard.tensors) {
      for (const tensor::TensorSpec& spec : planned.outputs) {
        add(fmt::format("{} {} {}", spec.name, tensor::name(spec.dtype), spec.shape.to_string()));
      }
    }
  }
  return hash.hex();
}

bool is_hash(std::string_view text) { return text.size() == 32 && is_hexadecimal(text); }

QuantizationReport QuantizationManifest::report() const& {
  return QuantizationManifest(*this).report();
}

QuantizationReport QuantizationManifest::report() && {
  QuantizationReport report{.recipe = identity.recipe,
                            .dequantization = identity.dequantization,
                            .scale_search = identity.scale_search,
                            .complete = shards.size() == num_shards,
                            .tensors = {}};
  size_t num_rows = 0;
  for (const FinishedShard& shard : shards) num_rows += shard.tensors.size();
  report.tensors.reserve(num_rows);
  for (FinishedShard& shard : shards) {
    std::ranges::move(shard.tensors, std::back_inserter(report.tensors));
    shard.tensors = {};
  }
  return report;
}

void add_to(json::object& document, const QuantizationManifest& manifest) {
  add_head_to(document, manifest);
  json::array shards;
  for (const FinishedShard& shard : manifest.shards) shards.push_back(to_json(shard));
  document["shards"] = std::move(shards);
}

base::Status write_pieces(json::object document, const QuantizationManifest& manifest,
                          const TextSink& sink) {
  add_head_to(document, manifest);
  std::string text = base::pretty_json(document);
  text.resize(text.rfind("\n}"));
  TRY(sink(text + ",\n  \"shards\": ["));
  // A line a shard.
  std::string_view before = "\n    ";
  for (const FinishedShard& shard : manifest.shards) {
    TRY(sink(before));
    TRY(sink(base::compact_json(to_json(shard))));
    before = ",\n    ";
  }
  return sink("\n  ]\n}\n");
}

base::Status write_manifest(const std::filesystem::path& path, json::object document,
                            const QuantizationManifest& manifest) {
  auto file = TRY(base::OutputFile::create(path));
  TRY(write_pieces(std::move(document), manifest,
                   [&](std::string_view text) { return file.write(text); }));
  return file.finish();
}

base::Result<QuantizationManifest> parse_manifest(std::string_view text, std::string_view source,
                                                  size_t rows_max) {
  auto manifest = [&]() -> base::Result<QuantizationManifest> {
    return parse(TRY(base::parse_json(text, source)), source, rows_max);
  }();
  if (manifest) return manifest;
  return base::error("{}; how this model was made cannot be read", manifest.error().message);
}

base::Result<QuantizationManifest> read_manifest(const std::filesystem::path& path,
                                                 size_t rows_max) {
  // Names of files, rules of a recipe; and a row whose scales have all bytes.
  constexpr uint64_t kHeadBytesMax = uint64_t{8} << 20;
  constexpr uint64_t kRowBytesMax = uint64_t{16} << 10;
  const uint64_t rows = std::min<uint64_t>(rows_max, kManifestBytesMax / kRowBytesMax);
  const uint64_t bytes_max = std::min(kManifestBytesMax, kHeadBytesMax + rows * kRowBytesMax);
  return parse_manifest(TRY(base::read_text_file(path, bytes_max)), path.string(), rows_max);
}

}  // namespace ingot::quantize
