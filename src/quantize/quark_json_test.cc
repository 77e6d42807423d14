#include "quantize/quark_json.h"

#include <string>

#include <gtest/gtest.h>

namespace ingot::quantize {
namespace {

std::string text_of(std::string_view json) {
  const auto value = base::parse_json(json, "test");
  EXPECT_TRUE(value.has_value()) << json;
  return value ? quark_json(*value) : "";
}

// What Python 3.11 prints for the same documents.
TEST(QuarkJson, WritesLikePython) {
  EXPECT_EQ(text_of("{}"), "{}");
  EXPECT_EQ(text_of("[]"), "[]");
  EXPECT_EQ(text_of(R"({"a": [], "b": {}, "c": null, "d": [true, false]})"),
            "{\n"
            "    \"a\": [],\n"
            "    \"b\": {},\n"
            "    \"c\": null,\n"
            "    \"d\": [\n"
            "        true,\n"
            "        false\n"
            "    ]\n"
            "}");
  EXPECT_EQ(text_of(R"({"z": 1, "a": 2})"), "{\n    \"z\": 1,\n    \"a\": 2\n}");
}

TEST(QuarkJson, WritesNumbersLikePython) {
  const std::pair<const char*, const char*> cases[] = {
      {"0", "0"},
      {"-1", "-1"},
      {"154880", "154880"},
      {"18446744073709551615", "18446744073709551615"},
      {"0.0", "0.0"},
      {"-0.0", "-0.0"},
      {"2.5", "2.5"},
      {"1e-5", "1e-05"},
      {"0.00001", "1e-05"},
      {"1.5e-7", "1.5e-07"},
      {"0.0001", "0.0001"},
      {"0.02", "0.02"},
      {"10000.0", "10000.0"},
      {"8e6", "8000000.0"},
      {"1e15", "1000000000000000.0"},
      {"9007199254740994.0", "9007199254740994.0"},
      {"1e16", "1e+16"},
      {"1e22", "1e+22"},
      {"1.7976931348623157e308", "1.7976931348623157e+308"},
      {"5e-324", "5e-324"},
      {"0.1", "0.1"},
      {"0.30000000000000004", "0.30000000000000004"},
  };
  for (const auto& [json, expected] : cases) EXPECT_EQ(text_of(json), expected);
}

TEST(QuarkJson, EscapesLikePython) {
  EXPECT_EQ(text_of(R"("a\"b\\c\/d")"), R"("a\"b\\c/d")");
  EXPECT_EQ(text_of(R"("\b\f\n\r\t\u0000\u001f\u007f")"), "\"\\b\\f\\n\\r\\t\\u0000\\u001f\x7F\"");
  EXPECT_EQ(text_of(R"({"h\u00e9": "\u4e2d"})"), "{\n    \"hé\": \"中\"\n}");
}

}  // namespace
}  // namespace ingot::quantize
