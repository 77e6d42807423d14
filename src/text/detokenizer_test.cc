#include "text/detokenizer.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"
#include "text/tokenizer_fixture.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

// Byte by byte, so that every character is split everywhere.
TEST(Detokenizer, HoldsBackHalfCharacters) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  Detokenizer detokenizer(tokenizer, SpecialTokens::kKeep);
  std::vector<std::string> pieces;
  for (const char byte : std::string("é🚢a\xE4\xB8"
                                     "b\xFF")) {
    pieces.push_back(detokenizer.push(static_cast<uint8_t>(byte)).value().text);
  }
  EXPECT_EQ(pieces,
            (std::vector<std::string>{"", "é", "", "", "", "🚢", "a", "", "", "\uFFFDb", "\uFFFD"}));
  EXPECT_EQ(detokenizer.finish(), "");
  EXPECT_EQ(detokenizer.push(0xE4).value().text, "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, TellsAddedTokensAndTheirText) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  Detokenizer detokenizer(tokenizer, SpecialTokens::kKeep);
  EXPECT_EQ(detokenizer.push(256).value().added_token, nullptr);
  EXPECT_EQ(detokenizer.push(256).value().added_token_begin, 2u);
  EXPECT_EQ(detokenizer.push(0xE4).value().text, "");
  const DetokenizedText marker = detokenizer.push(261).value();
  ASSERT_NE(marker.added_token, nullptr);
  EXPECT_EQ(marker.added_token->id, 261);
  EXPECT_EQ(marker.text, "\uFFFD<b>");
  EXPECT_EQ(marker.added_token_begin, 3u);
}

// As if it were not there: Hugging Face leaves it out before it joins the bytes.
TEST(Detokenizer, SkippedTokensPartNoCharacter) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  Detokenizer detokenizer(tokenizer, SpecialTokens::kSkip);
  EXPECT_EQ(detokenizer.push(0xC3).value().text, "");
  const DetokenizedText skipped = detokenizer.push(260).value();
  EXPECT_EQ(skipped.text, "");
  ASSERT_NE(skipped.added_token, nullptr);
  EXPECT_EQ(skipped.added_token->content, "<a>");
  EXPECT_EQ(skipped.added_token_begin, 0u);
  EXPECT_EQ(detokenizer.push(0xA9).value().text, "é");
  EXPECT_EQ(detokenizer.push(261).value().text, "<b>");  // not special
}

TEST(Detokenizer, AnUnknownIdChangesNothing) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  Detokenizer detokenizer(tokenizer, SpecialTokens::kKeep);
  EXPECT_EQ(detokenizer.push(0xC3).value().text, "");
  EXPECT_FALSE(detokenizer.push(263).has_value());
  EXPECT_EQ(detokenizer.push(0xA9).value().text, "é");
}

// What a lossy decoder makes of all bytes at once, in one pass over them.
std::string lossy(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const Utf8Unit unit = first_utf8_unit(bytes);
    const bool valid = unit.kind == Utf8Kind::kCharacter;
    text += valid ? bytes.substr(0, unit.size_bytes) : kReplacementCharacter;
    bytes.remove_prefix(unit.size_bytes);
  }
  return text;
}

TEST(Detokenizer, GivesWhatAllBytesAtOnceGive) {
  const Tokenizer tokenizer = tokenizer_of(small_tokenizer_json());
  constexpr std::string_view kLikely = "\xC3\xA9\xE4\xB8\xAD\xF0\x9F\x9A\xA2\xED\xA0\xF4\x90\xC0";
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const base::RandomStream stream = base::random_stream(seed, "detokenizer");
    Detokenizer detokenizer(tokenizer, SpecialTokens::kKeep);
    std::string bytes;
    std::string text;
    for (uint64_t i = 0; i < 30; ++i) {
      const uint64_t word = stream.word(i);
      const bool is_byte = word % 4 != 0;
      const int32_t id = is_byte ? static_cast<uint8_t>(kLikely[(word >> 8) % kLikely.size()])
                                 : static_cast<int32_t>((word >> 8) % 263);
      bytes += tokenizer.token_bytes(id);
      const std::string piece = detokenizer.push(id).value().text;
      ASSERT_FALSE(find_invalid_utf8(piece).has_value());
      text += piece;
    }
    ASSERT_EQ(text + detokenizer.finish(), lossy(bytes)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace ingot::text
