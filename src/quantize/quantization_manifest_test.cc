#include "quantize/quantization_manifest.h"

#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"

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
  tensor.rounding.scale_bytes[1] = 3;
  tensor.rounding.scale_bytes[120] = 125;
  return tensor;
}

QuantizationManifest example() {
  QuantizationManifest manifest;
  manifest.identity = {.model_hash = "0123456789abcdef",
                       .source_files = {{"a.safetensors", 9000}, {"b.safetensors", 10000}},
                       .recipe = "mixed",
                       .rules = {{.pattern = "*mlp*", .treatment = Treatment::kMxfp4},
                                 {.pattern = "*", .treatment = Treatment::kKeep, .optional = true}},
                       .dequantization = "fp32",
                       .scale_search = "even",
                       .layout_hash = std::string(32, 'c')};
  manifest.num_shards = 2;
  manifest.shards.push_back(
      {.file_name = "a.safetensors",
       .file_bytes = 3000,
       .sources = {{.name = "a.safetensors", .size_bytes = 9000, .modified_ns = 1'799'999'999'123}},
       .tensors = {kept_tensor(), rounded_tensor("experts.0", 0.01 / 3),
                   rounded_tensor("experts.1", 0.02 / 3)}});
  return manifest;
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
  EXPECT_FALSE(manifest->report().complete);
  EXPECT_EQ(manifest->report().tensors.size(), 3U);
}

TEST(QuantizationManifest, WithoutAnyOfItsKeysItIsDamaged) {
  const std::set<std::string> may_be_absent = {"optional", "modified_ns", "relative_rms_error", "1",
                                               "120"};
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

TEST(QuantizationReport, RefusesAnUnknownVersion) {
  const base::ScratchDirectory scratch;
  json::object document = document_of(example());
  document["schema"] = "ingot.quantization/2";
  CHECK(base::write_text_file(scratch / kManifestName, base::compact_json(document)).has_value());
  const auto report = read_report(scratch.path());
  ASSERT_FALSE(report.has_value());
  EXPECT_TRUE(report.error().message.contains("its schema is \"ingot.quantization/2\""))
      << report.error().message;
}

}  // namespace
}  // namespace ingot::quantize
