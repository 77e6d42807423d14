#include "text/code_points.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

std::string upper(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) append_upper(out, next_code_point(text, at));
  return out;
}

std::string title(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) append_title(out, next_code_point(text, at));
  return out;
}

std::string lower(std::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size(); next_code_point(text, at)) append_lower(out, text, at);
  return out;
}

// The expectations are what Python's str methods give.
TEST(CodePoints, CaseMappingsAreTheFullOnes) {
  EXPECT_EQ(upper("aZ straße ŉ ﬁ ǆ ᾳ"), "AZ STRASSE ʼN FI Ǆ ΑΙ");
  EXPECT_EQ(upper("\u0390"), "\u0399\u0308\u0301");
  EXPECT_EQ(title("ß"), "Ss");
  EXPECT_EQ(title("ǆ"), "ǅ");
  EXPECT_EQ(title("ᾳ"), "ᾼ");
  EXPECT_EQ(title("ŉ"), "ʼN");
  EXPECT_EQ(title("\u1FB7"), "\u0391\u0342\u0345");
  EXPECT_EQ(lower("İ ÀẞΩ"), "i̇ àßω");
}

TEST(CodePoints, SigmaLooksDifferentAtTheEndOfAWord) {
  EXPECT_EQ(lower("ΟΔΟΣ ΣΟΣ"), "οδος σος");
  EXPECT_EQ(lower("Σ"), "σ");
  EXPECT_EQ(lower("ΑΣ."), "ας.");
  EXPECT_EQ(lower("ΑΣ.Α"), "ασ.α");
}

TEST(CodePoints, WhiteSpaceIsThatOfPython) {
  EXPECT_EQ(leading_space(" \t\u00A0\u3000\u2028x "), 10u);
  EXPECT_EQ(trailing_space("x \u00A0\n"), 4u);
  EXPECT_EQ(trailing_space("\u200B"), 0u);
}

TEST(CodePoints, BytesThatAreNoUtf8CountOneByOne) {
  const std::string_view text = "a\xE2\x82z\xFF";
  EXPECT_EQ(count_code_points(text), 5u);
  EXPECT_EQ(previous_start(text, 5), 4u);
  EXPECT_EQ(previous_start(text, 3), 2u);
  EXPECT_EQ(previous_start("é", 2), 0u);
}

}  // namespace
}  // namespace ingot::text
