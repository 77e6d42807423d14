#include "text/stop_strings.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::text {
namespace {

using Strings = std::vector<std::string>;

// The definition: the match of smallest end, then of smallest begin, then of smallest index.
std::optional<StopMatch> first_match(std::string_view text, const Strings& strings,
                                     size_t num_passed = 0) {
  std::optional<StopMatch> first;
  for (size_t index = 0; index < strings.size(); ++index) {
    for (size_t begin = 0; begin + strings[index].size() <= text.size(); ++begin) {
      const StopMatch match{begin, begin + strings[index].size(), index};
      if (match.end <= num_passed || text.substr(begin, strings[index].size()) != strings[index])
        continue;
      const bool is_before = !first || match.end < first->end ||
                             (match.end == first->end && match.begin < first->begin);
      if (is_before) first = match;
    }
  }
  return first;
}

// How much of a text in which nothing was found could stand before a match.
size_t certain(std::string_view text, const Strings& strings) {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    const std::string_view end = text.substr(begin);
    const auto may_grow = [&](const std::string& string) {
      return string.size() > end.size() && std::string_view(string).starts_with(end);
    };
    if (std::ranges::any_of(strings, may_grow)) return begin;
  }
  return text.size();
}

void expect_same_however_cut(std::string_view text, const Strings& strings) {
  const auto expected = first_match(text, strings);
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    StopStrings search(strings);
    if (!search.push(text.substr(0, cut))) {
      EXPECT_EQ(search.num_certain(), certain(text.substr(0, cut), strings)) << text << cut;
      search.push(text.substr(cut));
    }
    EXPECT_EQ(search.match(), expected) << text << "\ncut at " << cut;
    if (expected) {
      EXPECT_EQ(search.num_certain(), expected->begin);
    }
  }
}

TEST(StopStrings, GoldenTextsCutAtEveryByte) {
  const struct {
    const char* text;
    Strings strings;
    std::optional<StopMatch> expected;
  } goldens[] = {
      {"one\n\nUser: two", {"User:", "\n\n"}, StopMatch{3, 5, 1}},
      {"one\n\nUser: two", {"\n\nUser:", "User:"}, StopMatch{3, 10, 0}},
      {"xabcdx", {"cd", "abcd", "abcd", "d"}, StopMatch{1, 5, 1}},
      {"xabcdx", {"d", "bcd", "xabcdxy"}, StopMatch{2, 5, 1}},
      {"aaab", {"aab"}, StopMatch{1, 4, 0}},
      {"abcabcabd", {"abcabd"}, StopMatch{3, 9, 0}},
      {"she said", {"hers", "his", "he"}, StopMatch{1, 3, 2}},
      {"grüße 🙂", {"üß", "🙂"}, StopMatch{2, 6, 0}},
      {"grue", {"ü"}, std::nullopt},
      {"abababab", {"ababac", "bac"}, std::nullopt},
      {"anything", {}, std::nullopt},
      {"", {"a"}, std::nullopt},
  };
  for (const auto& golden : goldens) {
    EXPECT_EQ(first_match(golden.text, golden.strings), golden.expected) << golden.text;
    expect_same_however_cut(golden.text, golden.strings);
  }
}

TEST(StopStrings, RandomTextsOfTwoLetters) {
  const base::RandomStream random{11};
  uint64_t counter = 0;
  const auto draw = [&](uint64_t bound) { return random.word(counter++) % bound; };
  const auto text = [&](size_t size) {
    std::string letters;
    while (letters.size() < size) letters += draw(3) == 0 ? 'b' : 'a';
    return letters;
  };
  size_t num_found = 0;
  for (int i = 0; i < 300; ++i) {
    Strings strings(1 + draw(4));
    for (std::string& string : strings) string = text(1 + draw(9));
    const std::string letters = text(draw(40));
    num_found += first_match(letters, strings).has_value() ? 1 : 0;
    expect_same_however_cut(letters, strings);
  }
  // Both outcomes were seen often.
  EXPECT_GT(num_found, 50u);
  EXPECT_LT(num_found, 250u);
}

TEST(StopStrings, WhatIsPassedEndsNothing) {
  const base::RandomStream random{12};
  const Strings strings = {"aba", "bb", "aabb"};
  for (uint64_t i = 0; i < 200; ++i) {
    std::string text;
    for (uint64_t j = 0; j < 16; ++j) text += random.word(i * 16 + j) % 2 == 0 ? 'a' : 'b';
    for (size_t num_passed = 0; num_passed <= text.size(); ++num_passed) {
      StopStrings search(strings);
      search.pass(std::string_view(text).substr(0, num_passed));
      EXPECT_EQ(search.num_certain(), certain(text.substr(0, num_passed), strings));
      search.push(std::string_view(text).substr(num_passed));
      EXPECT_EQ(search.match(), first_match(text, strings, num_passed)) << text << num_passed;
    }
  }
}

// Linear: what a search that starts again for every byte would do here takes hours.
TEST(StopStrings, LongStringsInTextThatRepeatsThem) {
  constexpr size_t kSize = 1 << 20;
  const std::string almost(kSize, 'a');
  StopStrings search(Strings{almost + "b", almost + "c"});
  for (int i = 0; i < 4; ++i) {
    for (const char c : almost) search.push({&c, 1});
    EXPECT_EQ(search.num_certain(), kSize * i);
  }
  EXPECT_EQ(search.push("c"), (StopMatch{3 * kSize, 4 * kSize + 1, 1}));
}

}  // namespace
}  // namespace ingot::text
