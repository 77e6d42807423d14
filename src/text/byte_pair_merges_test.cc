#include "text/byte_pair_merges.h"

#include <algorithm>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::text {
namespace {

std::array<int32_t, 256> bytes_as_tokens() {
  std::array<int32_t, 256> tokens{};
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

// The definition: as long as a rule fits, apply the first of those that do, where it first fits.
std::vector<int32_t> by_definition(const std::vector<MergeRule>& rules, std::string_view word) {
  std::vector<int32_t> tokens;
  for (const char byte : word) tokens.push_back(static_cast<uint8_t>(byte));
  for (size_t rank = 0; rank < rules.size();) {
    const std::array<int32_t, 2> pair = {rules[rank].left, rules[rank].right};
    const auto found = std::ranges::search(tokens, pair).begin();
    if (found == tokens.end()) {
      ++rank;
      continue;
    }
    *found = rules[rank].merged;
    tokens.erase(found + 1);
    rank = 0;
  }
  return tokens;
}

// Rules over the letters a to d whose tokens are of every length, in an order that no trainer
// would give: a pair may come before those that make its parts.
std::vector<MergeRule> random_rules(base::RandomStream stream, size_t count) {
  std::vector<MergeRule> rules;
  const auto any_token = [&](uint64_t word) {
    const size_t choice = word % (4 + rules.size());
    return static_cast<int32_t>(choice < 4 ? 'a' + choice : 256 + choice - 4);
  };
  for (size_t i = 0; i < count; ++i) {
    const MergeRule rule{.left = any_token(stream.word(2 * i)),
                         .right = any_token(stream.word(2 * i + 1)),
                         .merged = static_cast<int32_t>(256 + i)};
    const bool known = std::ranges::any_of(rules, [&](const MergeRule& other) {
      return other.left == rule.left && other.right == rule.right;
    });
    rules.push_back(known ? MergeRule{'x', 'x', rule.merged} : rule);
  }
  std::ranges::sort(rules, {}, [&](const MergeRule& rule) {
    return stream.word(1000 + static_cast<uint64_t>(rule.merged));
  });
  const auto same = [](const MergeRule& a, const MergeRule& b) {
    return a.left == 'x' && b.left == 'x';
  };
  rules.erase(std::unique(rules.begin(), rules.end(), same), rules.end());
  std::erase_if(rules, [](const MergeRule& rule) { return rule.left == 'x'; });
  return rules;
}

// Both algorithms, the one for short words and the one for long ones, do as the definition says.
TEST(BytePairMerges, EncodesByDefinition) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const base::RandomStream stream = base::random_stream(seed, "byte pairs");
    const std::vector<MergeRule> rules = random_rules(stream, 1 + seed % 40);
    const BytePairMerges merges(rules, bytes_as_tokens());
    BytePairMerges::Workspace workspace;
    for (size_t length = 0; length < 120; length += 1 + seed % 7) {
      std::string word;
      for (size_t i = 0; i < length; ++i) {
        word += static_cast<char>('a' + stream.word(5000 + 200 * length + i) % 4);
      }
      std::vector<int32_t> ids;
      merges.encode(word, workspace, ids);
      ASSERT_EQ(ids, by_definition(rules, word)) << "seed " << seed << ", word " << word;
    }
  }
}

TEST(BytePairMerges, TheLastRuleOfAPairHolds) {
  const std::vector<MergeRule> rules = {{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 256}};
  const BytePairMerges merges(rules, bytes_as_tokens());
  BytePairMerges::Workspace workspace;
  std::vector<int32_t> ids;
  merges.encode("abc", workspace, ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{'a', 257}));
}

TEST(BytePairMerges, AppendsToWhatIsThere) {
  const BytePairMerges merges({}, bytes_as_tokens());
  BytePairMerges::Workspace workspace;
  std::vector<int32_t> ids = {7};
  merges.encode("ab", workspace, ids);
  merges.encode("", workspace, ids);
  merges.encode(std::string(100, 'c'), workspace, ids);
  ASSERT_EQ(ids.size(), 103u);
  EXPECT_EQ(ids[0], 7);
  EXPECT_EQ(ids[2], 'b');
  EXPECT_EQ(ids[102], 'c');
}

}  // namespace
}  // namespace ingot::text
