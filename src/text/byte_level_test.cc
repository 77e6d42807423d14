#include "text/byte_level.h"

#include <set>

#include <gtest/gtest.h>

#include "text/utf8.h"

namespace ingot::text {
namespace {

TEST(ByteLevel, EveryByteHasItsCharacter) {
  std::set<char32_t> seen;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t character = byte_level_character(static_cast<uint8_t>(byte));
    EXPECT_TRUE(seen.insert(character).second);
    std::string content;
    append_utf8(content, character);
    EXPECT_EQ(byte_level_bytes(content), std::string(1, static_cast<char>(byte)));
  }
}

TEST(ByteLevel, KnownCharacters) {
  EXPECT_EQ(byte_level_bytes("Ġthe"), " the");
  EXPECT_EQ(byte_level_bytes("Ċĉ"), "\n\t");
  EXPECT_EQ(byte_level_bytes("ä¸Ń"), "中");
  EXPECT_EQ(byte_level_bytes(""), "");
}

TEST(ByteLevel, OtherCharactersAreNotOfTheAlphabet) {
  for (const char* content : {" ", "a b", "\n", "｜", "中", "\xC2\xAD", "ń", "▁"}) {
    EXPECT_EQ(byte_level_bytes(content), std::nullopt) << content;
  }
}

}  // namespace
}  // namespace ingot::text
