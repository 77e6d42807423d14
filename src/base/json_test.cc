#include "base/json.h"

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::base {
namespace {

std::string failure(std::string_view text) {
  const Result<json::value> result = parse_json(text, "config.json");
  return result ? "accepted" : result.error().message;
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') +
         std::string(static_cast<size_t>(depth), ']');
}

TEST(Json, ParsesEveryKindOfValue) {
  const auto value = parse_json(R"( {"a": [1, -2, 18446744073709551615, 1.5, true, null],
                                     "text": "\u00e9\n\ud83d\ude00", "empty": {}, "": []} )",
                                "source");
  ASSERT_TRUE(value.has_value());
  const json::object& object = value->as_object();
  const json::array& array = object.at("a").as_array();
  EXPECT_EQ(array[0].as_int64(), 1);
  EXPECT_EQ(array[1].as_int64(), -2);
  EXPECT_EQ(array[2].as_uint64(), 18446744073709551615u);
  EXPECT_EQ(array[3].as_double(), 1.5);
  EXPECT_TRUE(array[4].as_bool());
  EXPECT_TRUE(array[5].is_null());
  EXPECT_EQ(object.at("text").as_string(), "é\n😀");
  EXPECT_TRUE(object.at("empty").as_object().empty());
  EXPECT_TRUE(object.at("").as_array().empty());
}

TEST(Json, KeepsTheOrderOfKeys) {
  const auto value = parse_json(R"({"z": 1, "a": 2, "m": 3})", "source");
  ASSERT_TRUE(value.has_value());
  std::string keys;
  for (const auto& member : value->as_object()) keys += std::string(member.key());
  EXPECT_EQ(keys, "zam");
}

TEST(Json, RefusesRepeatedKeysWithTheirPlace) {
  EXPECT_EQ(failure("{\"a\": 1,\n \"b\": {\"x\": 1, \"x\": 2}}"),
            "config.json: line 2, column 18: key \"x\" appears twice; remove one of them");
  // Written differently, read the same.
  EXPECT_NE(failure(R"({"a": 1, "\u0061": 2})").find("key \"a\" appears twice"), std::string::npos);
  EXPECT_NE(failure(R"({"a\nb": 1, "a\nb": 2})").find(R"(key "a\nb" appears)"), std::string::npos)
      << "on one line";
  EXPECT_NE(failure(R"({"": 1, "": 2})").find("key \"\" appears twice"), std::string::npos);
}

TEST(Json, AllowsOneKeyInDifferentObjects) {
  EXPECT_EQ(failure(R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})"), "accepted");
}

TEST(Json, NamesLineAndColumnOfErrors) {
  const std::string message = failure("{\n  \"a\": 1,\n  \"b\": tru\n}");
  EXPECT_TRUE(message.starts_with("config.json: line 3, column 8: not valid JSON: ")) << message;
  EXPECT_TRUE(failure("?").starts_with("config.json: line 1, column 1: ")) << failure("?");
}

TEST(Json, RefusesTextAfterTheDocument) {
  EXPECT_EQ(failure("{}\n\n  {}"),
            "config.json: line 3, column 3: text after the end of the JSON document");
  EXPECT_NE(failure("1 2"), "accepted");
  EXPECT_NE(failure("[1],"), "accepted");
  EXPECT_EQ(failure("{} \r\n\t "), "accepted");
}

TEST(Json, LimitsNesting) {
  EXPECT_EQ(failure(nested(32)), "accepted");
  EXPECT_NE(failure(nested(33)), "accepted");
  EXPECT_NE(failure(std::string(1'000'000, '[')), "accepted");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (const char* text : {"",
                           " ",
                           "{",
                           "[1",
                           "\"open",
                           "{\"a\"}",
                           "{\"a\":}",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a: 1}",
                           "'a'",
                           "01",
                           "+1",
                           "1.",
                           ".5",
                           "1e",
                           "NaN",
                           "Infinity",
                           "// comment\n1",
                           "/* comment */ 1",
                           "tru",
                           "\"\\x\"",
                           "\"\\ud800\"",
                           "\"\t\"",
                           "\xEF\xBB\xBF{}",
                           "\"\xFF\"",
                           "\"\xC0\xAF\"",
                           "{\"\xED\xA0\x80\": 1}"}) {
    EXPECT_NE(failure(text), "accepted") << text;
  }
  EXPECT_NE(failure(std::string_view("{}\0", 3)), "accepted");
}

TEST(Json, RefusesNumbersThatFitNoDouble) {
  EXPECT_NE(failure("1e400").find("exponent overflow"), std::string::npos) << failure("1e400");
  EXPECT_NE(failure("[-1E999]"), "accepted");
  for (const char* zero : {"1e-400", "0e400", "-0e999"}) {
    ASSERT_EQ(failure(zero), "accepted") << zero;
    EXPECT_EQ(parse_json(zero, "source")->as_double(), 0) << zero;
  }
}

TEST(Json, ReadsTheNearestDouble) {
  const RandomStream stream = random_stream(1, "doubles");
  for (uint64_t i = 0; i < 20'000; ++i) {
    const auto expected = std::bit_cast<double>(stream.word(i));
    if (!std::isfinite(expected)) continue;
    const std::string text = fmt::format("[{:.17g},{:e}]", expected, 0.1);
    const auto value = parse_json(text, "source");
    ASSERT_TRUE(value.has_value()) << value.error().message;
    // A whole number below 2^64 is read as an integer, with the same value.
    ASSERT_EQ(value->as_array()[0].to_number<double>(), expected) << text;
    ASSERT_EQ(value->as_array()[1].as_double(), 0.1);
    ASSERT_EQ(parse_json(pretty_json(*value), "printed"), *value) << text;
    ASSERT_EQ(parse_json(compact_json(*value), "printed"), *value) << text;
  }
}

TEST(Json, RefusesEveryShorterPiece) {
  const std::string whole = R"({"name": "glm", "sizes": [1, 2.5e3], "nested": {"on": true}})";
  ASSERT_EQ(failure(whole), "accepted");
  for (size_t length = 0; length < whole.size(); ++length) {
    EXPECT_NE(failure(whole.substr(0, length)), "accepted") << length;
  }
}

TEST(Json, PrettyTextIsIndentedAndReadsBack) {
  const std::string text = R"({
  "schema": "ingot.test/1",
  "numbers": [1,2,3],
  "rows": [
    {
      "name": "a \"quoted\" name"
    },
    []
  ],
  "empty": {},
  "last": null
}
)";
  const auto value = parse_json(text, "source");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(pretty_json(*value), text);
  EXPECT_EQ(pretty_json(json::value(true)), "true\n");
}

TEST(Json, PrettyTextHasNoInfinity) {
  const double infinity = std::numeric_limits<double>::infinity();
  const json::value value = {{"perplexity", infinity}, {"row", {1, -infinity, std::nan("")}}};
  EXPECT_EQ(pretty_json(value), "{\n  \"perplexity\": null,\n  \"row\": [1,null,null]\n}\n");
  EXPECT_EQ(compact_json(value), "{\"perplexity\":null,\"row\":[1,null,null]}");
}

}  // namespace
}  // namespace ingot::base
