#include "text/added_tokens.h"

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

// "[0,3)=1 [5,8)=2": the matches in a text, all of it or the given parts.
std::string found(std::vector<AddedToken> tokens, std::string_view text,
                  std::vector<TextSpan> allowed = {}) {
  if (allowed.empty()) allowed = {{0, text.size()}};
  std::string list;
  for (const AddedTokenMatch& m : AddedTokenFinder(std::move(tokens)).find(text, allowed)) {
    list += (list.empty() ? "[" : " [") + std::to_string(m.begin) + "," + std::to_string(m.end) +
            ")=" + std::to_string(m.id);
  }
  return list;
}

TEST(AddedTokens, LeftmostThenLongest) {
  const std::vector<AddedToken> tokens = {
      {.id = 1, .content = "<a>"}, {.id = 2, .content = "<a><b>"}, {.id = 3, .content = "b><"}};
  EXPECT_EQ(found(tokens, "<a><b><a>"), "[0,6)=2 [6,9)=1");
  EXPECT_EQ(found(tokens, "x<b><a><b"), "[2,5)=3");
  EXPECT_EQ(found(tokens, "<a><c><a"), "[0,3)=1");
  EXPECT_EQ(found(tokens, ""), "");
}

TEST(AddedTokens, OnlyInsideOfAllowedParts) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "<a>"},
                                          {.id = 2, .content = "<a><a>"}};
  EXPECT_EQ(found(tokens, "<a><a>", {{0, 6}}), "[0,6)=2");
  EXPECT_EQ(found(tokens, "<a><a>", {{0, 5}}), "[0,3)=1");
  EXPECT_EQ(found(tokens, "<a><a>", {{1, 6}}), "[3,6)=1");
  EXPECT_EQ(found(tokens, "<a><a>", {{0, 3}, {3, 6}}), "[0,3)=1 [3,6)=1");
  EXPECT_EQ(found(tokens, "<a><a>", {{0, 2}, {2, 4}, {5, 6}}), "");
}

TEST(AddedTokens, WhiteSpaceGoesAlong) {
  const AddedToken left{.id = 1, .content = "<l>", .lstrip = true};
  const AddedToken right{.id = 2, .content = "<r>", .rstrip = true};
  EXPECT_EQ(found({left}, "a \n\u3000<l> b"), "[1,9)=1");
  EXPECT_EQ(found({right}, "a <r>\t\u00A0b"), "[2,8)=2");
  EXPECT_EQ(found({left, right}, "<r>  <l>"), "[0,5)=2 [5,8)=1");
  EXPECT_EQ(found({left}, "<l><l>  <l>"), "[0,3)=1 [3,6)=1 [6,11)=1");
  EXPECT_EQ(found({left}, "\u180E<l>"), "[3,6)=1");
}

TEST(AddedTokens, SingleWords) {
  const std::vector<AddedToken> tokens = {{.id = 1, .content = "né", .single_word = true}};
  EXPECT_EQ(found(tokens, "né né-né (né)"), "[0,3)=1 [4,7)=1 [8,11)=1 [13,16)=1");
  for (const char* text :
       {"née", "1né", "né_", "中né", "né\u0301", "né\u200D", "né\u2167", "néⓐ"}) {
    EXPECT_EQ(found(tokens, text), "") << text;
  }
  for (const char* text : {"né½", "né€", "né🚢"}) EXPECT_EQ(found(tokens, text), "[0,3)=1") << text;
}

}  // namespace
}  // namespace ingot::text
