#include "tensor/checkpoint_index.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::tensor {
namespace {

std::string refusal(std::string_view text) {
  const auto index = parse_checkpoint_index(text, "index.json");
  if (index) return "accepted";
  EXPECT_TRUE(index.error().message.starts_with("index.json: ")) << index.error().message;
  EXPECT_FALSE(index.error().message.contains('\n')) << index.error().message;
  return index.error().message;
}

void expect_refused(std::string_view text, std::string_view because) {
  EXPECT_TRUE(refusal(text).contains(because)) << refusal(text) << "\nshould say: " << because;
}

TEST(CheckpointIndex, ReadsTheMap) {
  const auto index = parse_checkpoint_index(
      R"({"metadata": {"total_size": 1.5e12, "weight_map": "x"}, "extra": [{"weight_map": 1}, []],
          "weight_map": {"b": "two", "a": "one", "c\u00e9": "two"}, "more": null})",
      "index.json");
  ASSERT_TRUE(index.has_value()) << index.error().message;
  EXPECT_EQ(index->shards, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(index->shard_of.size(), 3u);
  EXPECT_EQ(index->shard_of.at("a"), 0u);
  EXPECT_EQ(index->shard_of.at("b"), 1u);
  EXPECT_EQ(index->shard_of.at("cé"), 1u);
}

TEST(CheckpointIndex, RefusesShardsElsewhere) {
  for (const char* shard :
       {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a/", "a\\u0000b"}) {
    expect_refused(R"({"weight_map": {"x": ")" + std::string(shard) + "\"}}",
                   "not the name of a file beside the index");
  }
  EXPECT_EQ(refusal(R"({"weight_map": {"x": "..model"}})"), "accepted");
}

TEST(CheckpointIndex, RefusesATensorListedTwice) {
  expect_refused(R"({"weight_map": {"x": "a", "y": "a", "x": "b"}})",
                 R"(tensor "x" is listed twice)");
  expect_refused(R"({"weight_map": {"x": "a", "\u0078": "a"}})", R"(tensor "x" is listed twice)");
}

TEST(CheckpointIndex, RefusesOtherForms) {
  expect_refused("{}", "no weight_map");
  expect_refused(R"({"metadata": {"weight_map": {"x": "a"}}})", "no weight_map");
  expect_refused(R"({"weight_map": {}})", "weight_map is empty");
  expect_refused(R"({"weight_map": {"x": "a"}, "weight_map": {"y": "a"}})",
                 "weight_map appears twice");
  for (const char* value : {"1", "-1", "1.5", "null", "true", "[]", "{}", "[\"a\"]"}) {
    expect_refused(R"({"weight_map": {"x": )" + std::string(value) + "}}", "not a string");
  }
  for (const char* value : {"1", "null", "\"a\"", "[]", "[{\"x\": \"a\"}]"}) {
    expect_refused(R"({"weight_map": )" + std::string(value) + "}", "weight_map");
  }
  for (const char* document : {"1", "null", "\"a\"", "[]", "[{\"weight_map\": {\"x\": \"a\"}}]"}) {
    expect_refused(document, "not an object");
  }
}

TEST(CheckpointIndex, RefusesWhatIsNotJson) {
  const std::string whole = R"({"metadata": {}, "weight_map": {"x": "a"}})";
  ASSERT_EQ(refusal(whole), "accepted");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(refusal(whole.substr(0, length)), "accepted") << length;
  }
  expect_refused(whole + "{}", "text after the end");
  expect_refused(R"({"weight_map": {"x": "a",}})", "not valid JSON");
  expect_refused("{\"weight_map\": {\"\xFF\": \"a\"}}", "not valid JSON");
}

}  // namespace
}  // namespace ingot::tensor
