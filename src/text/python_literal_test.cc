#include "text/python_literal.h"

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

std::string as_json(std::string_view text) {
  const auto value = parse_python_literal(text);
  return value ? base::compact_json(*value) : "nothing";
}

// As ast.literal_eval reads them.
TEST(PythonLiteral, ReadsWhatPythonWrites) {
  EXPECT_EQ(as_json("True"), "true");
  EXPECT_EQ(as_json(" None "), "null");
  EXPECT_EQ(as_json("['a', \"b\", -1.5, 1e3]"), R"(["a","b",-1.5,1000.0])");
  EXPECT_EQ(as_json("{'a': {'b': [False,]}, }"), R"({"a":{"b":[false]}})");
  EXPECT_EQ(as_json("{'a': 1, 'a': 2}"), R"({"a":2})");
  EXPECT_EQ(as_json("(1, 'x')"), R"([1,"x"])");
  EXPECT_EQ(as_json("(1,)"), "[1]");
  EXPECT_EQ(as_json("(1)"), "1");
  EXPECT_EQ(as_json("()"), "[]");
  EXPECT_EQ(as_json(R"('it\'s \x41\u00e9\n\q')"), R"("it's Aé\n\\q")");
  EXPECT_EQ(as_json("'a\\\nb'"), R"("ab")");
}

TEST(PythonLiteral, AnythingElseIsNothing) {
  for (const char* text : {"",       "hello",   "Truest",      "[1",        "[1 2]",
                           "{'a'}",  "{1: 2}",  "'open",       "'a' 'b'",   "1 2",
                           "(",      "(,)",     "{'a': 1",     "'\\ud800'", "'\\u12'",
                           "'\\x4'", "'\\101'", "'\\N{DASH}'", "'a\nb'",    "__import__('os')",
                           "1+2",    "nan"}) {
    EXPECT_EQ(as_json(text), "nothing") << text;
  }
  EXPECT_EQ(as_json(std::string(100000, '[')), "nothing");
}

}  // namespace
}  // namespace ingot::text
