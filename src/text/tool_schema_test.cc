#include "text/tool_schema.h"

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

JsonTypes types_of(std::string_view schema) {
  const auto root = base::parse_json(R"({"$defs": {"text": {"type": "string"},
      "loop": {"$ref": "#/$defs/loop"}, "many": {"anyOf": [{"$ref": "#/$defs/many"},
      {"$ref": "#/$defs/many"}, {"$ref": "#/$defs/many"}]}}})",
                                     "root")
                        .value();
  return types_of_schema(base::parse_json(schema, "schema").value(), root);
}

TEST(ToolSchema, TypesOfASchema) {
  EXPECT_TRUE(types_of(R"({"type": "string"})").only_string());
  EXPECT_TRUE(types_of(R"({"type": "integer"})").number);
  EXPECT_TRUE(types_of(R"({"enum": ["a", "b"]})").only_string());
  EXPECT_TRUE(types_of(R"({"const": 4})").number);
  EXPECT_TRUE(types_of(R"({"anyOf": [{"type": "string"}, {"enum": ["x"]}]})").only_string());
  const JsonTypes nullable = types_of(R"({"type": ["string", "null"]})");
  EXPECT_TRUE(nullable.string && nullable.null && !nullable.only_string());
  EXPECT_TRUE(types_of(R"({"$ref": "#/$defs/text"})").only_string());
  EXPECT_TRUE(types_of(R"({"allOf": [{"$ref": "#/$defs/text"}], "title": "T"})").only_string());
  EXPECT_TRUE(types_of(R"({"type": ["string", "null"], "enum": ["a"]})").only_string());
  EXPECT_TRUE(types_of(R"({"allOf": [{"type": ["integer", "null"]}, {"type": "number"}]})").number);
  const JsonTypes either = types_of(R"({"oneOf": [{"type": "number"}, {"type": "array"}]})");
  EXPECT_TRUE(either.number && either.array && !either.string);
}

TEST(ToolSchema, WhatIsNotSaidIsUnknown) {
  for (const char* schema : {"{}", "true", R"({"$ref": "#/x"})", R"({"$ref": "#/$defs/loop"})",
                             R"({"$ref": "#/$defs/many"})", R"({"$ref": "http://a/b"})",
                             R"({"$ref": "#"})", R"({"type": 3})", R"({"type": "thing"})",
                             R"({"anyOf": [{"type": "string"}, {}]})", R"({"anyOf": 1})"}) {
    EXPECT_TRUE(types_of(schema).unknown()) << schema;
    EXPECT_TRUE(types_of(schema).allows(base::json::value(1))) << schema;
  }
  std::string deep = R"({"type": "string"})";
  for (int i = 0; i < 12; ++i) deep = R"({"anyOf": [)" + deep + "]}";
  EXPECT_TRUE(types_of(deep).unknown());
}

TEST(ToolSchema, ToolsWrappedAndBare) {
  const auto tools = parse_tools(base::parse_json(R"([
    {"type": "function", "function": {"name": "find", "parameters": {"type": "object",
      "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}}},
    {"name": "stop"}])",
                                                  "tools")
                                     .value());
  ASSERT_TRUE(tools.has_value()) << tools.error().message;
  ASSERT_EQ(tools->size(), 2u);
  EXPECT_EQ(tools->front().name, "find");
  EXPECT_TRUE(tools->front().types_of("query").only_string());
  EXPECT_TRUE(tools->front().types_of("limit").number);
  EXPECT_TRUE(tools->front().types_of("other").unknown());
  EXPECT_TRUE(tools->back().arguments.empty());
}

TEST(ToolSchema, WhatIsNoToolIsRefused) {
  const auto message = [](std::string_view text) {
    const auto tools = parse_tools(base::parse_json(text, "tools").value());
    return tools ? "fine" : tools.error().message;
  };
  EXPECT_EQ(message("[]"), "fine");
  EXPECT_EQ(message("{}"), "tools: expected an array of functions");
  const std::string nameless = R"(no function with a name; expected {"type": "function", )"
                               R"("function": {"name": "...", ...}})";
  EXPECT_EQ(message(R"([{"name": "a"}, 3])"), "tools[1]: " + nameless);
  EXPECT_EQ(message(R"([{"function": {"name": ""}}])"), "tools[0]: " + nameless);
  EXPECT_EQ(message(R"([{"function": {"name": 1}}])"), "tools[0]: " + nameless);
}

}  // namespace
}  // namespace ingot::text
