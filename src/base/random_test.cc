#include "base/random.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

constexpr uint64_t kLast = ~uint64_t{0};

// Expected values were computed with Python's integers. Those of splitmix64 at 0 and of the first
// words at key 0 are also the published first outputs of SplitMix64 with seed 0.
TEST(Random, SplitMix64HasItsKnownValues) {
  EXPECT_EQ(splitmix64(0), 0xe220a8397b1dcdafu);
  EXPECT_EQ(splitmix64(1), 0x910a2dec89025cc1u);
  EXPECT_EQ(splitmix64(42), 0xbdd732262feb6e95u);
  EXPECT_EQ(splitmix64(kLast), 0xe4d971771b652c20u);
  EXPECT_EQ(RandomStream{0}.word(1), 0x6e789e6aa1b965f4u);
  EXPECT_EQ(RandomStream{0}.word(2), 0x06c45d188009454fu);
}

TEST(Random, Fnv1aHasItsKnownValues) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325u);
  EXPECT_EQ(fnv1a64("a"), 0xaf63dc4c8601ec8cu);
  EXPECT_EQ(fnv1a64("foobar"), 0x85944171f73967e8u);
  EXPECT_EQ(fnv1a64("\xc3\xa9"), 0x0ac21707b7181e01u);  // bytes above 127 are not negative
}

TEST(Random, NamedStreamHasItsKnownValues) {
  constexpr RandomStream kStream = random_stream(7, "weights");
  struct Expected {
    uint64_t counter, word;
    double uniform, normal;
  };
  for (const Expected& expected : {
           Expected{0, 0x69637e51a32f02cc, 0x1.a58df9468cbc0p-2, -0x1.8bfa9d477eb0ep-1},
           Expected{1, 0x24e1a72c076b906b, 0x1.270d39603b5c8p-3, -0x1.0e625cb4b3e41p+0},
           Expected{2, 0x3a6140e45686151a, 0x1.d30a0722b4308p-3, -0x1.e6e0db527f05bp+0},
           Expected{1000000, 0x9d84d0fbb2dee73e, 0x1.3b09a1f765bdcp-1, 0x1.ca538ef4b8a77p+0},
           Expected{kLast, 0xf0356938b913849c, 0x1.e06ad27172270p-1, 0x1.05be851c927e9p+0},
       }) {
    EXPECT_EQ(kStream.word(expected.counter), expected.word) << expected.counter;
    EXPECT_EQ(kStream.uniform(expected.counter), expected.uniform) << expected.counter;
    EXPECT_EQ(kStream.normal(expected.counter), expected.normal) << expected.counter;
  }
}

TEST(Random, StreamsDifferBySeedAndName) {
  EXPECT_NE(random_stream(1, "a").key, random_stream(2, "a").key);
  EXPECT_NE(random_stream(1, "a").key, random_stream(1, "b").key);
}

TEST(Random, MomentsAreThoseOfTheDistributions) {
  constexpr RandomStream kStream = random_stream(3, "moments");
  constexpr int kCount = 200000;
  double uniform_sum = 0;
  double sum = 0;
  double squares = 0;
  for (uint64_t i = 0; i < kCount; ++i) {
    const double uniform = kStream.uniform(i);
    ASSERT_TRUE(uniform >= 0 && uniform < 1);
    uniform_sum += uniform;
    const double normal = kStream.normal(i);
    sum += normal;
    squares += normal * normal;
  }
  // Five standard errors.
  EXPECT_NEAR(uniform_sum / kCount, 0.5, 5 * std::sqrt(1.0 / 12 / kCount));
  EXPECT_NEAR(sum / kCount, 0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1, 5 * std::sqrt(2.0 / kCount));
}

TEST(Random, EveryBitOfAWordIsFair) {
  constexpr RandomStream kStream = random_stream(4, "bits");
  constexpr int kCount = 40000;
  int ones[64] = {};
  for (uint64_t i = 0; i < kCount; ++i) {
    for (int bit = 0; bit < 64; ++bit) ones[bit] += static_cast<int>(kStream.word(i) >> bit & 1);
  }
  for (const int count : ones) EXPECT_NEAR(count, kCount / 2, 5 * std::sqrt(kCount) / 2);
}

}  // namespace
}  // namespace ingot::base
