#include "steps.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::parity {

std::vector<Ids> ids_of(const GoldenCase& golden, size_t longest) {
  std::vector<Ids> sequences;
  for (const GoldenSequence& sequence : golden.sequences) {
    sequences.push_back(sequence.ids);
    sequences.back().resize(std::min(longest, sequence.ids.size()));
  }
  return sequences;
}

std::vector<Step> in_chunks(const std::vector<Ids>& sequences, size_t size) {
  std::vector<Step> steps;
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (size_t first = 0; first < sequences[s].size(); first += size) {
      steps.push_back({{.sequence = s, .count = std::min(size, sequences[s].size() - first)}});
    }
  }
  return steps;
}

std::vector<Step> in_company(const std::vector<Ids>& sequences, uint64_t seed) {
  const base::RandomStream random = base::random_stream(seed, "company");
  uint64_t drawn = 0;
  std::vector<size_t> left;
  for (const Ids& ids : sequences) left.push_back(ids.size());
  std::vector<Step> steps;
  while (std::ranges::any_of(left, [](size_t n) { return n > 0; })) {
    Step step;
    for (size_t s = sequences.size(); s-- > 0;) {
      const uint64_t draw = random.word(drawn++);
      if (left[s] == 0 || draw % 3 == 0) continue;
      const size_t count = std::min<size_t>(left[s], draw % 2 == 0 ? 1 : 1 + draw % 23);
      step.push_back({.sequence = s, .count = count});
      left[s] -= count;
    }
    if (!step.empty()) steps.push_back(step);
  }
  return steps;
}

std::vector<Ids> with_company(const GoldenCase& golden, size_t vocabulary) {
  std::vector<Ids> sequences = ids_of(golden, kLongest);
  const base::RandomStream random = base::random_stream(golden.seed, "ids");
  for (uint64_t extra = 0; extra < 2; ++extra) {
    Ids ids;
    for (uint64_t i = 0; i < 20 + 19 * extra; ++i) {
      ids.push_back(static_cast<int32_t>(random.word(extra * 1000 + i) % vocabulary));
    }
    sequences.push_back(ids);
  }
  return sequences;
}

void expect_steps_do_not_matter(GoldenModel& model, const GoldenCase& golden) {
  const auto sequences = with_company(golden, model.vocabulary());
  const Outcome whole = run_steps(model, sequences, one_by_one(sequences));
  const auto expect_equal = [&](const std::vector<Step>& steps, const char* how) {
    const Outcome outcome = run_steps(model, sequences, steps);
    EXPECT_TRUE(outcome.logits == whole.logits) << how;
    EXPECT_TRUE(outcome.selected == whole.selected) << how;
    EXPECT_EQ(outcome.drafts, whole.drafts) << how;
  };
  expect_equal(in_chunks(sequences, 1), "token by token");
  expect_equal(in_chunks(sequences, 7), "in chunks of 7");
  for (const uint64_t seed : {1, 2}) expect_equal(in_company(sequences, seed), "in company");
}

}  // namespace ingot::parity
