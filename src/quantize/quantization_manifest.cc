#include "quantize/quantization_manifest.h"

#include <limits>

#include <fmt/format.h>

#include "base/mapped_file.h"
#include "model/config_reader.h"
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

json::object to_json(const FinishedShard& shard) {
  json::array sources;
  for (const SourceFile& file : shard.sources) {
    sources.push_back(json::object{
        {"name", file.name}, {"size_bytes", file.size_bytes}, {"modified_ns", file.modified_ns}});
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

base::Result<std::string> required_string(model::ConfigReader& reader, std::string_view key) {
  std::string text = TRY(reader.string_or(key, ""));
  if (text.empty()) return base::error("{}: \"{}\" is missing", reader.source(), key);
  return text;
}

base::Result<RecipeRule> parse_rule(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  RecipeRule rule {
    .pattern = TRY(required_string(reader, "pattern"))
    , .treatment = Treatment::kKeep, .optional = TRY(reader.boolean_or("optional", false))
  };
  const std::string treatment = TRY(required_string(reader, "treatment"));
  for (const auto known : {Treatment::kKeep, Treatment::kMxfp4, Treatment::kFp8Channel}) {
    if (treatment != name(known)) continue;
    rule.treatment = known;
    return rule;
  }
  return base::error("{}: unknown treatment {}", source, model::shown_string(treatment));
}

base::Result<SourceFile> parse_source_file(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  return SourceFile {
    .name = TRY(required_string(reader, "name"))
    , .size_bytes = static_cast<uint64_t>(TRY(reader.integer("size_bytes", 0, kMost))),
      .modified_ns = TRY(reader.integer_or("modified_ns", 0, -kMost, kMost))
  };
}

base::Result<FinishedShard> parse_shard(const json::value& value, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(value, source));
  FinishedShard shard;
  shard.file_name = TRY(required_string(reader, "file"));
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
  identity.dequantization = TRY(required_string(reader, "dequant"));
  identity.scale_search = TRY(required_string(reader, "scale_search"));
  identity.layout_hash = TRY(required_string(reader, "layout_hash"));
  const json::object* recipe = TRY(reader.object("recipe"));
  const json::object* origin = TRY(reader.object("source"));
  if (recipe == nullptr || origin == nullptr) {
    return base::error("{}: \"recipe\" or \"source\" is missing", source);
  }
  model::ConfigReader recipe_reader(*recipe, source);
  identity.recipe = TRY(required_string(recipe_reader, "name"));
  TRY(read_array(recipe_reader, "rules", [&](const json::value& rule) -> base::Status {
    identity.rules.push_back(TRY(parse_rule(rule, source)));
    return {};
  }));
  model::ConfigReader origin_reader(*origin, source);
  identity.model_hash = TRY(required_string(origin_reader, "model_hash"));
  TRY(read_array(origin_reader, "files", [&](const json::value& value) -> base::Status {
    const SourceFile file = TRY(parse_source_file(value, source));
    identity.source_files.emplace_back(file.name, file.size_bytes);
    return {};
  }));
  return identity;
}

base::Result<QuantizationManifest> parse(const json::value& document, std::string_view source) {
  model::ConfigReader reader = TRY(reader_of(document, source));
  const std::string schema = TRY(reader.string_or("schema", ""));
  if (schema != kSchema) {
    return base::error("{}: its schema is {} and this build reads {}", source,
                       model::shown_string(schema), kSchema);
  }
  QuantizationManifest manifest;
  manifest.identity = TRY(parse_identity(reader));
  manifest.num_shards = static_cast<uint64_t>(TRY(reader.integer("num_shards", 0, kMost)));
  TRY(read_array(reader, "shards", [&](const json::value& shard) -> base::Status {
    manifest.shards.push_back(TRY(parse_shard(shard, source)));
    return {};
  }));
  return manifest;
}

}  // namespace

std::string difference(const RunIdentity& there, const RunIdentity& here) {
  if (there.source_files != here.source_files)
    return "the source's files have other names or sizes";
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

QuantizationReport QuantizationManifest::report() const {
  QuantizationReport report{.recipe = identity.recipe,
                            .dequantization = identity.dequantization,
                            .scale_search = identity.scale_search,
                            .complete = shards.size() == num_shards,
                            .tensors = {}};
  for (const FinishedShard& shard : shards) {
    report.tensors.insert(report.tensors.end(), shard.tensors.begin(), shard.tensors.end());
  }
  return report;
}

void add_to(json::object& document, const QuantizationManifest& manifest) {
  const RunIdentity& identity = manifest.identity;
  json::array files;
  for (const auto& [name, size_bytes] : identity.source_files) {
    files.push_back(json::object{{"name", name}, {"size_bytes", size_bytes}});
  }
  document["source"] =
      json::object{{"model_hash", identity.model_hash}, {"files", std::move(files)}};
  document["recipe"] =
      json::object{{"name", identity.recipe}, {"rules", rules_json(identity.rules)}};
  document["dequant"] = identity.dequantization;
  document["scale_search"] = identity.scale_search;
  document["layout_hash"] = identity.layout_hash;
  document["num_shards"] = manifest.num_shards;
  json::array shards;
  for (const FinishedShard& shard : manifest.shards) shards.push_back(to_json(shard));
  document["shards"] = std::move(shards);
}

base::Result<QuantizationManifest> parse_manifest(std::string_view text, std::string_view source) {
  auto manifest = [&]() -> base::Result<QuantizationManifest> {
    return parse(TRY(base::parse_json(text, source)), source);
  }();
  if (manifest) return manifest;
  return base::error("{}; how this model was made cannot be read", manifest.error().message);
}

base::Result<QuantizationManifest> read_manifest(const std::filesystem::path& path) {
  return parse_manifest(TRY(base::read_text_file(path, kManifestBytesMax)), path.string());
}

}  // namespace ingot::quantize
