#include "quantize/quantization_manifest.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"
#include "quantize/line_of_text.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;

TensorReport kept_tensor() {
  return {.name = "model.norm.weight",
          .module_class = model::ModuleClass::kEmbedding,
          .treatment = Treatment::kKeep,
          .source_bytes = 144,
          .output_bytes = 144,
          .source_hash = std::string(32, 'a')};
}

TensorReport rounded_tensor(std::string name, double squared_errors) {
  TensorReport tensor{.name = std::move(name),
                      .module_class = model::ModuleClass::kRoutedExperts,
                      .treatment = Treatment::kMxfp4,
                      .source_bytes = 8192,
                      .output_bytes = 2176,
                      .source_hash = std::string(32, 'b')};
  tensor.rounding.num_values = 4096;
  tensor.rounding.num_blocks = 128;
  tensor.rounding.num_zero_blocks = 3;
  tensor.rounding.num_clipped = 41;
  tensor.rounding.sum_squares = 1.0 / 3;
  tensor.rounding.sum_squared_errors = squared_errors;
  tensor.rounding.error_max = 0.1F;
  tensor.rounding.magnitude_max = 1.7F;
  tensor.rounding.scale_bytes = {{1, 3}, {120, 125}};
  return tensor;
}

QuantizationManifest example() {
  QuantizationManifest manifest;
  manifest.identity = {.model_hash = "0123456789abcdef",
                       .source_files = {{"a.safetensors", 9000, 1'799'999'999'123, 5, -7},
                                        {"b.safetensors", 10000, -3, 5, 8}},
                       .recipe = "mixed",
                       .rules = {{.pattern = "*mlp*", .treatment = Treatment::kMxfp4},
                                 {.pattern = "*", .treatment = Treatment::kKeep, .optional = true}},
                       .dequantization = "fp32",
                       .scale_search = "even",
                       .layout_hash = std::string(32, 'c')};
  manifest.num_shards = 2;
  manifest.shards.push_back({.file_name = "a.safetensors",
                             .file_bytes = 3000,
                             .sources = {{"a.safetensors", 9000, 1'799'999'999'123, 5, -7}},
                             .tensors = {kept_tensor(), rounded_tensor("experts.0", 0.01 / 3),
                                         rounded_tensor("experts.1", 0.02 / 3)}});
  return manifest;
}

std::string text_of(const QuantizationManifest& manifest) {
  std::string text;
  const auto appended = [&](std::string_view piece) -> base::Status {
    text += piece;
    return {};
  };
  CHECK(write_pieces({{"schema", "ingot.quantization/1"}}, manifest, appended).has_value());
  return text;
}

json::object document_of(const QuantizationManifest& manifest) {
  json::object document{{"schema", "ingot.quantization/1"}};
  add_to(document, manifest);
  return document;
}

// Calls `visit` for every member of every object, with the key and a function that gives a copy of
// the whole in which the member is replaced, or removed by nothing.
using Replace = std::function<json::value(const std::optional<json::value>&)>;
void for_each_member(const json::value& value, const std::function<json::value(json::value)>& whole,
                     const std::function<void(std::string, const Replace&)>& visit) {
  if (const json::array* array = value.if_array()) {
    for (size_t i = 0; i < array->size(); ++i) {
      for_each_member((*array)[i],
                      [&, i](json::value part) {
                        json::array copy = *array;
                        copy[i] = std::move(part);
                        return whole(std::move(copy));
                      },
                      visit);
    }
  }
  const json::object* object = value.if_object();
  if (object == nullptr) return;
  for (const auto& member : *object) {
    const std::string key(member.key());
    const auto replaced = [&, key](const std::optional<json::value>& part) {
      json::object copy = *object;
      copy.erase(key);
      if (part) copy[key] = *part;
      return whole(std::move(copy));
    };
    visit(key, replaced);
    for_each_member(member.value(), replaced, visit);
  }
}

TEST(QuantizationManifest, ReadsBackWhatItWrites) {
  const json::object document = document_of(example());
  const auto manifest = parse_manifest(base::pretty_json(document), "m.json");
  ASSERT_TRUE(manifest.has_value()) << manifest.error().message;
  EXPECT_EQ(base::pretty_json(document_of(*manifest)), base::pretty_json(document));
  EXPECT_EQ(difference(manifest->identity, example().identity), "");
  EXPECT_EQ(text_of(*manifest), text_of(example()));
  EXPECT_EQ(base::compact_json(base::parse_json(text_of(example()), "m.json").value()),
            base::compact_json(document));
  const QuantizationReport report = example().report();
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.tensors.size(), 3U);
}

TEST(QuantizationManifest, WithoutAnyOfItsKeysItIsDamaged) {
  const std::set<std::string> may_be_absent = {"optional", "relative_rms_error", "1", "120"};
  int members = 0;
  const json::value document = document_of(example());
  for_each_member(
      document, [](json::value value) { return value; },
      [&](const std::string& key, const Replace& replace) {
        ++members;
        const auto manifest = parse_manifest(base::compact_json(replace({})), "m.json");
        EXPECT_EQ(manifest.has_value(), may_be_absent.contains(key)) << key;
        if (!manifest) {
          EXPECT_TRUE(manifest.error().message.starts_with("m.json: ")) << key;
        }
        const auto wrong = parse_manifest(base::compact_json(replace(json::array{1})), "m.json");
        EXPECT_EQ(wrong.has_value(), key == "relative_rms_error") << key;
        for (const json::value& value : {json::value(-1), json::value("x"), json::value(1e300)}) {
          static_cast<void>(parse_manifest(base::compact_json(replace(value)), "m.json"));
        }
      });
  EXPECT_GT(members, 60);
  EXPECT_FALSE(parse_manifest("[]", "m.json").has_value());
  EXPECT_FALSE(parse_manifest("{", "m.json").has_value());
}

// It came with a download, and what it says goes to a terminal.
TEST(QuantizationManifest, RefusesTextsThatAreNotWhatTheySeem) {
  const json::object document = document_of(example());
  const auto with = [&](std::string_view before, std::string_view after) {
    std::string text = base::compact_json(document);
    const size_t at = text.find(before);
    CHECK(at != std::string::npos, before);
    text.replace(at, before.size(), after);
    return parse_manifest(text, "m.json");
  };
  ASSERT_TRUE(with("experts.0", "experts.2").has_value());
  for (const auto& [before, after] : std::vector<std::pair<std::string, std::string>>{
           {"experts.0", "experts\\u001b[2J"},
           {"experts.0", "experts\\u009b2J"},
           {"experts.0", "experts\\n0"},
           {"quantization/1", "quantization/\\u009b"},
           {"\"keep\"", "\"\\u009b\""},
           {"\"mixed\"", "\"\\u0007mixed\""},
           {"*mlp*", "*\\u007f*"},
           {"\"file\":\"a.safetensors", "\"file\":\"../a.safetensors"},
           {"\"file\":\"a.safetensors", "\"file\":\"..\",\"x\":\""},
           {"\"name\":\"b.safetensors", "\"name\":\"/b.safetensors"},
           {"fp32", "fp64"},
           {"\"even\"", "\"odd\""},
           {"0123456789abcdef", "0123456789abcdeF"},
           {std::string(32, 'c'), std::string(31, 'c')},
           {std::string(32, 'a'), std::string(32, 'z')}}) {
    const auto manifest = with(before, after);
    EXPECT_FALSE(manifest.has_value()) << after;
    if (manifest) continue;
    EXPECT_TRUE(is_line_of_text(manifest.error().message)) << after;
  }
}

TEST(QuantizationManifest, IsNoLargerThanItsModel) {
  const std::string text = text_of(example());
  EXPECT_TRUE(parse_manifest(text, "m.json", 3).has_value());
  EXPECT_FALSE(parse_manifest(text, "m.json", 2).has_value());
  const base::ScratchDirectory scratch;
  CHECK(
      base::write_text_file(scratch / kManifestName, text + std::string(9 << 20, ' ')).has_value());
  EXPECT_TRUE(read_manifest(scratch / kManifestName, 1000).has_value());
  EXPECT_FALSE(read_manifest(scratch / kManifestName, 3).has_value()) << "of 9 MiB";
}

TEST(QuantizationManifest, ListsNoFileTwice) {
  QuantizationManifest manifest = example();
  manifest.shards.push_back(manifest.shards.front());
  const auto read = parse_manifest(text_of(manifest), "m.json");
  ASSERT_FALSE(read.has_value());
  EXPECT_TRUE(read.error().message.contains("a.safetensors is listed twice"))
      << read.error().message;
}

TEST(QuantizationManifest, NamesADifference) {
  const RunIdentity here = example().identity;
  RunIdentity there = here;
  there.recipe = "another name of the same rules";
  EXPECT_EQ(difference(there, here), "");
  there.rules[1].optional = false;
  EXPECT_EQ(difference(there, here),
            "the recipe differs (another name of the same rules there, mixed here)");
  there = here;
  there.model_hash = "0";
  EXPECT_TRUE(difference(there, here).contains("model hash 0 there, 0123456789abcdef here"));
  there = here;
  there.rounding_version = 0;
  EXPECT_EQ(difference(there, here), "another version of Ingot rounded otherwise");
  there = here;
  there.source_files[0].modified_ns = 1;
  EXPECT_EQ(difference(there, here), "") << "hashes tell";
  there.source_files[0].size_bytes = 1;
  EXPECT_EQ(difference(there, here), "the source's files have other names or sizes");
  there = here;
  there.layout_hash = "0";
  EXPECT_EQ(difference(there, here), "another version of Ingot laid out the files");
}

TEST(QuantizationReport, ShowsTheWorstFirst) {
  const std::string text = describe(example().report());
  EXPECT_TRUE(text.contains("interrupted, not complete")) << text;
  EXPECT_TRUE(text.contains("routed experts  mxfp4             2")) << text;
  EXPECT_TRUE(text.contains("0.12247")) << "both experts together\n" << text;
  EXPECT_LT(text.find("experts.1"), text.find("experts.0")) << text;
  EXPECT_FALSE(describe(example().report(), 1).contains("experts.0"));
}

TEST(QuantizationReport, AddsUpClasses) {
  const json::array classes = classes_json(example().report());
  ASSERT_EQ(classes.size(), 2U);
  const json::object& experts = classes[1].as_object();
  EXPECT_EQ(experts.at("module"), "routed experts");
  EXPECT_EQ(experts.at("num_tensors"), 2);
  const json::object& rounding = experts.at("rounding").as_object();
  EXPECT_EQ(rounding.at("num_blocks"), 256);
  EXPECT_EQ(rounding.at("scale_bytes"), (json::object{{"1", 6}, {"120", 250}}));
  EXPECT_FALSE(classes[0].as_object().contains("rounding")) << "kept";
}

TEST(QuantizationReport, RefusesAnUnknownVersion) {
  const base::ScratchDirectory scratch;
  json::object document = document_of(example());
  document["schema"] = "ingot.quantization/2";
  CHECK(base::write_text_file(scratch / kManifestName, base::compact_json(document)).has_value());
  const auto report = read_report(scratch.path(), 3);
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().message.contains("its schema is \"ingot.quantization/2\""))
      << report.error().message;
}

}  // namespace
}  // namespace ingot::quantize
