#include "text/split_syntax.h"

#include <string>

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

std::string verdict(std::string_view pattern) {
  const auto status = check_split_syntax(pattern, "file");
  if (status) return "accepted";
  EXPECT_TRUE(status.error().message.starts_with("file: ")) << status.error().message;
  EXPECT_FALSE(status.error().message.contains('\n')) << status.error().message;
  return status.error().message;
}

constexpr const char* kPublished[] = {
    // GLM
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
    // DeepSeek
    R"(\p{N}{1,3})", "[一-龥぀-ゟ゠-ヿ]+",
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?"
    "[\\p{L}\\p{M}]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
    // GPT-2
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)",
    // GPT-4o
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"};

TEST(SplitSyntax, AcceptsPublishedPatterns) {
  for (const char* pattern : kPublished) EXPECT_EQ(verdict(pattern), "accepted");
}

TEST(SplitSyntax, AcceptsItsSubset) {
  for (const char* pattern :
       {"a", "(a|b)?c", "(?:a)", "(?=a)b", "a??b*+c+?", "a{2}b{2,}c{2,30}", "[-a]", "[a-]",
        "[^a-z-]", R"([\]\[\\])", R"(\x{4E00}-\x{20})", R"([\x{41}-\x{5A}])", R"(\.\*\$)", "a]}",
        R"(\P{Lu}\D\S)", "[&-z]", "(?i:[ab]c)"}) {
    EXPECT_EQ(verdict(pattern), "accepted") << pattern;
  }
}

TEST(SplitSyntax, RefusesWhatEnginesReadDifferently) {
  for (const char* pattern : {"^a",           "a$",
                              "a.b",          R"(\bword)",
                              R"(\w+)",       R"(\h)",
                              R"(\v)",        R"(\Aa)",
                              R"(a\z)",       R"(\R)",
                              R"(\1)",        R"(\x41)",
                              R"(\u0041)",    R"(\pL)",
                              R"(\p{^L})",    R"(\p{Han})",
                              R"(\p{Alpha})", "[[:alpha:]]",
                              "[a&&b]",       "[]a]",
                              "[^]a]",        "a{1,3}+",
                              "a{1,3}?",      "a{,3}",
                              "a{x}",         "a{",
                              "a**",          "(?<=a)b",
                              "(?<n>a)",      "(?>a)",
                              "(?i)a",        "(?-i:a)",
                              "(*FAIL)",      "(?#c)",
                              "(?R)",         "(a+)+",
                              "(?:a|b)*",     "(?!a)?",
                              "*a",           "a|*",
                              "(?i:ß)",       "(?i:mass)",
                              "(?i:fi)",      R"((?i:\p{Lu}))",
                              "a)",           "[a",
                              R"(a\)",        R"([\s-a])",
                              R"([a-\s])",    R"(\x{110000})",
                              R"(\x{D800})",  R"(\x{})"}) {
    EXPECT_TRUE(verdict(pattern).contains("has no one meaning")) << pattern;
  }
}

// Each is a character that the pattern tests through a stand-in.
TEST(SplitSyntax, RefusesNamingReplacedCharacters) {
  EXPECT_TRUE(verdict("[\u0897]").contains("U+0897"));
  EXPECT_TRUE(verdict("[\u0816]").contains("U+0816"));  // the stand-in
  EXPECT_TRUE(verdict(R"(\x{180E})").contains("U+180E"));
  EXPECT_EQ(verdict(R"([\x{80}-\x{10FFFF}])"), "accepted");  // both
}

TEST(SplitSyntax, RefusesBytesThatAreNotUtf8) {
  EXPECT_TRUE(verdict("a\xFF").contains("byte 1 of a pattern is not UTF-8"));
}

TEST(SplitSyntax, SaysThePlace) {
  EXPECT_TRUE(verdict(R"(ab\bc)").contains(R"(byte 2 of pattern "ab\\bc": "\\b")"))
      << verdict(R"(ab\bc)");
}

}  // namespace
}  // namespace ingot::text
