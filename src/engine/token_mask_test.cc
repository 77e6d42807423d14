#include "engine/token_mask.h"

#include <vector>

#include <gtest/gtest.h>

namespace ingot::engine {
namespace {

using Words = std::vector<uint32_t>;

Words words_of(const TokenMask& mask) { return {mask.words().begin(), mask.words().end()}; }

TEST(TokenMask, AllowsAllAtFirstAndNothingBeyond) {
  EXPECT_EQ(words_of(TokenMask(0)), Words{});
  EXPECT_EQ(words_of(TokenMask(1)), Words{1});
  EXPECT_EQ(words_of(TokenMask(32)), Words{0xFFFFFFFF});
  EXPECT_EQ(words_of(TokenMask(37)), (Words{0xFFFFFFFF, 0x1F}));
  EXPECT_EQ(TokenMask::num_words(151'552), 4736);
}

TEST(TokenMask, ForbidsAndAllowsOneId) {
  TokenMask mask(40);
  mask.forbid(0);
  mask.forbid(33);
  EXPECT_EQ(words_of(mask), (Words{0xFFFFFFFE, 0xFD}));
  for (int32_t id = 0; id < 40; ++id) EXPECT_EQ(mask.allows(id), id != 0 && id != 33) << id;
  mask.allow(33);
  EXPECT_EQ(words_of(mask), (Words{0xFFFFFFFE, 0xFF}));
}

TEST(TokenMask, AnIntersectionAllowsWhatBothAllow) {
  TokenMask mask(40);
  TokenMask other(40);
  mask.forbid(3);
  other.forbid(39);
  mask.intersect(other.words());
  for (int32_t id = 0; id < 40; ++id) EXPECT_EQ(mask.allows(id), id != 3 && id != 39) << id;
}

TEST(TokenMaskDeathTest, RefusesIdsBeyondTheVocabulary) {
  TokenMask mask(40);
  EXPECT_DEATH(mask.forbid(40), "CHECK failed");
  EXPECT_DEATH(mask.allow(-1), "CHECK failed");
  EXPECT_DEATH(static_cast<void>(mask.allows(63)), "CHECK failed");
  EXPECT_DEATH(mask.intersect(TokenMask(32).words()), "CHECK failed");
}

}  // namespace
}  // namespace ingot::engine
