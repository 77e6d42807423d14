#include "text/normalizer.h"

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

std::string nfc(std::string_view text) { return normalized(text, Normalization::kNfc); }
std::string nfkc(std::string_view text) { return normalized(text, Normalization::kNfkc); }

TEST(Normalizer, Composes) {
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("e\u0301 a\u0301\u0323"), "é ạ\u0301");
  EXPECT_EQ(nfc("\u1100\u1161\u11A8"), "각");
  EXPECT_EQ(nfc("ﬁ①Ａ"), "ﬁ①Ａ");
  EXPECT_EQ(nfkc("ﬁ①Ａ ｶﾞ"), "fi1A ガ");
  EXPECT_EQ(nfkc("\uFDFA").size(), 33u);  // the longest decomposition
}

TEST(Normalizer, LeavesWhatIsNewerThanUnicode9) {
  EXPECT_EQ(nfkc("㋿"), "㋿");
  EXPECT_EQ(nfkc("\u0345\u1DF6\u0301"), "\u0345\u1DF6\u0301");  // as a starter, not as a mark
  EXPECT_EQ(nfc("\U00011935\U00011930"), "\U00011935\U00011930");
}

TEST(Normalizer, KeepsATrailingConsonantOfNothing) {
  EXPECT_EQ(nfc("\uAC00\u11A7"), "\uAC00\u11A7");
  EXPECT_EQ(nfc("\u1100\u1161\u11A7"), "\uAC00\u11A7");
}

// A million marks that are all out of order.
TEST(Normalizer, SortsMarksInLinearTime) {
  std::string text = "a";
  std::string sorted = "a";
  for (int i = 0; i < 500'000; ++i) text += "\u0345\u0334";
  for (int i = 0; i < 500'000; ++i) sorted += "\u0334";
  for (int i = 0; i < 500'000; ++i) sorted += "\u0345";
  EXPECT_TRUE(nfc(text) == sorted);
}

}  // namespace
}  // namespace ingot::text
