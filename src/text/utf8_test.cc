#include "text/utf8.h"

#include <gtest/gtest.h>

namespace ingot::text {
namespace {

// "C2" for a character of 2 bytes, "I1" for an invalid byte, "P3" for a part of 3 bytes.
std::string units(std::string_view bytes) {
  std::string kinds;
  while (!bytes.empty()) {
    const Utf8Unit unit = first_utf8_unit(bytes);
    kinds += unit.kind == Utf8Kind::kCharacter ? 'C' : unit.kind == Utf8Kind::kInvalid ? 'I' : 'P';
    kinds += static_cast<char>('0' + unit.size_bytes);
    bytes.remove_prefix(unit.size_bytes);
  }
  return kinds;
}

TEST(Utf8, KnowsCharacters) {
  EXPECT_EQ(units("aé中🚢"), "C1C2C3C4");
  EXPECT_EQ(units(std::string_view("\0\x7F", 2)), "C1C1");
  EXPECT_EQ(units("\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF"), "C3C3C4");
}

TEST(Utf8, MaximalSubparts) {
  EXPECT_EQ(units("\x80\xBF"), "I1I1");
  EXPECT_EQ(units("\xC0\x80\xC1\xBF"), "I1I1I1I1");        // overlong
  EXPECT_EQ(units("\xE0\x80\x80"), "I1I1I1");              // overlong
  EXPECT_EQ(units("\xED\xA0\x80"), "I1I1I1");              // a surrogate
  EXPECT_EQ(units("\xF4\x90\x80\x80\xF5"), "I1I1I1I1I1");  // above U+10FFFF
  EXPECT_EQ(units("\xE4\xB8"
                  "a\xF0\x9F\x9A"
                  "b"),
            "I2C1I3C1");  // broken off
  EXPECT_EQ(units("a\xF0\x9F\x9A"), "C1P3");
  EXPECT_EQ(units("\xC3"), "P1");
}

TEST(Utf8, CodePointsGoBothWays) {
  for (const char32_t c :
       {0x00u, 0x7Fu, 0x80u, 0x7FFu, 0x800u, 0xD7FFu, 0xE000u, 0xFFFFu, 0x10000u, 0x10FFFFu}) {
    std::string text;
    append_utf8(text, c);
    EXPECT_EQ(first_code_point(text), c);
    EXPECT_FALSE(find_invalid_utf8(text).has_value());
  }
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  EXPECT_EQ(find_invalid_utf8(""), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("plain ASCII of more than eight bytes, é and 中"), std::nullopt);
  EXPECT_EQ(find_invalid_utf8("12345678é9\xFFz"), 11u);
  EXPECT_EQ(find_invalid_utf8("12345678\xE4\xB8"), 8u);
}

}  // namespace
}  // namespace ingot::text
