#include "text/split_pattern.h"

#include <vector>

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  const SplitPattern split = SplitPattern::compile(pattern, "file").value();
  SplitPattern::Workspace workspace;
  const std::string subject = with_stand_ins(text).value_or(std::string(text));
  std::vector<std::string> found;
  for (size_t at = 0;;) {
    const auto match = split.find(subject, at, workspace).value();
    if (!match) return found;
    found.emplace_back(text.substr(match->begin, match->end - match->begin));
    at = match->end;
  }
}

using Words = std::vector<std::string>;

TEST(SplitPattern, ClassesAreUnicode) {
  EXPECT_EQ(matches(R"(\p{L}+)", "aé中1б"), (Words{"aé中", "б"}));
  EXPECT_EQ(matches(R"(\s+)", "a\u0085\u3000b c"), (Words{"\u0085\u3000", " "}));
  EXPECT_EQ(matches("(?i:'s)", "'S'ſ's"), (Words{"'S", "'ſ", "'s"}));
}

// U+180E lost White_Space in Unicode 6.3, and PCRE2's \s has it still.
TEST(SplitPattern, MongolianVowelSeparatorIsNoSpace) {
  EXPECT_EQ(matches(R"(\s+)", "a\u180Eb"), Words{});
  EXPECT_EQ(matches(R"(\S+)", "a\u180Eb"), Words{"a\u180Eb"});
}

// Assigned in Unicode 15 and 16, which PCRE2 10.42 does not know.
TEST(SplitPattern, NewerCharactersHaveTheirClass) {
  EXPECT_EQ(matches(R"(\p{L}+)", "\u1C89\U000105C0"), Words{"\u1C89\U000105C0"});
  EXPECT_EQ(matches(R"(\p{N}+)", "x\U00010D40"), Words{"\U00010D40"});
  EXPECT_EQ(matches(R"(\p{M}+)", "x\u0897"), Words{"\u0897"});
}

TEST(SplitPattern, StandInsKeepSizes) {
  EXPECT_EQ(with_stand_ins("no newer characters: é 中 🚢"), std::nullopt);
  const std::string text = "é\u1C89中\U000105C0z";
  const auto replaced = with_stand_ins(text);
  ASSERT_TRUE(replaced.has_value());
  EXPECT_EQ(replaced->size(), text.size());
  EXPECT_EQ(*replaced, "é\u10A0中\U00010000z");
}

TEST(SplitPattern, RefusesPatternsThatMatchNothing) {
  for (const char* pattern : {"a*", "", "a|", "(?=a)", "a?b?"}) {
    const auto split = SplitPattern::compile(pattern, "file");
    ASSERT_FALSE(split.has_value()) << pattern;
    EXPECT_TRUE(split.error().message.contains("without taking a character"))
        << split.error().message;
  }
}

TEST(SplitPattern, RefusesWhatDoesNotCompile) {
  for (const char* pattern : {"(a", "a{3,2}", "[z-a]"}) {
    const auto split = SplitPattern::compile(pattern, "file");
    ASSERT_FALSE(split.has_value()) << pattern;
    EXPECT_TRUE(split.error().message.starts_with("file: ")) << split.error().message;
  }
}

TEST(SplitPattern, GivesUpOnEndlessBacktracking) {
  const SplitPattern split = SplitPattern::compile("a+a+a+a+a+a+[bc]", "file").value();
  SplitPattern::Workspace workspace;
  const auto match = split.find(std::string(3000, 'a'), 0, workspace);
  ASSERT_FALSE(match.has_value());
  EXPECT_TRUE(match.error().message.contains("gave up at byte 0 of 3000")) << match.error().message;
}

}  // namespace
}  // namespace ingot::text
