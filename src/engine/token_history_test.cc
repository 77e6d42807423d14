#include "engine/token_history.h"

#include <map>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::engine {
namespace {

// By id, how often in prompt and output.
using Counts = std::map<int32_t, std::pair<int32_t, int32_t>>;

Counts counts_of(const TokenHistory& history) {
  Counts counts;
  for (const TokenHistory::Count& count : history.counts()) {
    EXPECT_TRUE(counts.try_emplace(count.id, count.in_prompt, count.in_output).second) << count.id;
  }
  return counts;
}

TEST(TokenHistory, IsEmptyAtFirst) {
  EXPECT_TRUE(TokenHistory().counts().empty());
  EXPECT_TRUE(TokenHistory(std::vector<int32_t>{}).counts().empty());
}

TEST(TokenHistory, TellsPromptFromOutput) {
  TokenHistory history(std::vector<int32_t>{7, 0, 7});
  history.append_output(0);
  history.append_output(5);
  history.append_output(5);
  EXPECT_EQ(counts_of(history), (Counts{{0, {1, 1}}, {5, {0, 2}}, {7, {2, 0}}}));
}

TEST(TokenHistory, EqualsAMapAfterEveryRandomToken) {
  const base::RandomStream random = base::random_stream(3, "tokens");
  uint64_t next = 0;
  const auto draw_below = [&](int32_t limit) {
    return static_cast<int32_t>(random.uniform(next++) * limit);
  };
  // Few ids, so that most repeat, and so many that the table grows often.
  for (const int32_t num_ids : {1, 5, 300, 151'552}) {
    Counts expected;
    std::vector<int32_t> prompt;
    for (int i = 0; i < 2000; ++i) {
      prompt.push_back(draw_below(num_ids));
      ++expected[prompt.back()].first;
    }
    TokenHistory history(prompt);
    ASSERT_EQ(counts_of(history), expected);
    for (int i = 0; i < 300; ++i) {
      const int32_t id = draw_below(num_ids);
      history.append_output(id);
      ++expected[id].second;
      ASSERT_EQ(counts_of(history), expected);
    }
  }
}

TEST(TokenHistory, MemoryGoesWithDistinctTokens) {
  std::vector<int32_t> prompt;
  for (int32_t i = 0; i < 100'000; ++i) prompt.push_back(151'551 - i % 5000);
  TokenHistory history(prompt);
  EXPECT_EQ(history.counts().size(), 5000);
  EXPECT_LE(history.memory_bytes(), 5000 * 40);
}

TEST(TokenHistoryDeathTest, RefusesNegativeIds) {
  TokenHistory history;
  EXPECT_DEATH(history.append_output(-1), "CHECK failed");
}

}  // namespace
}  // namespace ingot::engine
