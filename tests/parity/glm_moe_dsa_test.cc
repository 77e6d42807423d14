#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/random.h"
#include "golden_model.h"

namespace ingot::parity {
namespace {

std::vector<Ids> ids_of(const GoldenCase& golden) {
  std::vector<Ids> sequences;
  for (const GoldenSequence& sequence : golden.sequences) sequences.push_back(sequence.ids);
  return sequences;
}

class GlmMoeDsa : public testing::TestWithParam<std::string> {};

// Golden logits come from float64; an f32 engine stays within a few 1e-5 of them.
TEST_P(GlmMoeDsa, LogitsAndSelectionsEqualTheOracle) {
  const GoldenCase golden = read_golden_case(GetParam());
  GoldenModel model(golden, {});
  const auto sequences = ids_of(golden);
  const Outcome outcome = run_steps(model, sequences, one_by_one(sequences));
  for (size_t s = 0; s < golden.sequences.size(); ++s) {
    const GoldenSequence& want = golden.sequences[s];
    ASSERT_EQ(outcome.logits[s].size(), want.logits.size());
    float worst = 0;
    for (size_t i = 0; i < want.logits.size(); ++i) {
      worst = std::max(worst, std::abs(outcome.logits[s][i] - want.logits[i]));
    }
    EXPECT_LT(worst, 5e-5f) << "sequence " << s;
    EXPECT_EQ(outcome.selected[s], want.selected) << "sequence " << s;
  }
}

// A step for every `size` tokens of every sequence, one sequence after another.
std::vector<Step> in_chunks(const std::vector<Ids>& sequences, size_t size) {
  std::vector<Step> steps;
  for (size_t s = 0; s < sequences.size(); ++s) {
    for (size_t first = 0; first < sequences[s].size(); first += size) {
      steps.push_back({{.sequence = s, .count = std::min(size, sequences[s].size() - first)}});
    }
  }
  return steps;
}

// Steps in which several sequences advance by random amounts: prefill and decode mixed.
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

// The case's sequences and two more, so that there always is company.
std::vector<Ids> with_company(const GoldenCase& golden, size_t vocabulary) {
  std::vector<Ids> sequences = ids_of(golden);
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

// Equality, not tolerance: how tokens are divided into steps changes no bit.
void expect_steps_do_not_matter(const GoldenModel::Options& options, const std::string& name) {
  const GoldenCase golden = read_golden_case(name);
  GoldenModel model(golden, options);
  const auto sequences = with_company(golden, model.vocabulary());
  const Outcome whole = run_steps(model, sequences, one_by_one(sequences));
  const auto expect_equal = [&](const std::vector<Step>& steps, const char* how) {
    const Outcome outcome = run_steps(model, sequences, steps);
    EXPECT_EQ(outcome.logits, whole.logits) << how;
    EXPECT_EQ(outcome.selected, whole.selected) << how;
  };
  expect_equal(in_chunks(sequences, 1), "token by token");
  expect_equal(in_chunks(sequences, 7), "in chunks of 7");
  expect_equal(in_chunks(sequences, 16), "in chunks of a page");
  for (const uint64_t seed : {1, 2, 3}) expect_equal(in_company(sequences, seed), "in company");
}

TEST_P(GlmMoeDsa, StepsDoNotMatterInF32) {
  expect_steps_do_not_matter({.dtype = tensor::DType::kF32, .threads = 1, .numeric = {}},
                             GetParam());
}

TEST_P(GlmMoeDsa, StepsDoNotMatterInBF16) {
  expect_steps_do_not_matter({.dtype = tensor::DType::kBF16, .threads = 2, .numeric = {}},
                             GetParam());
}

TEST_P(GlmMoeDsa, ThreadsDoNotMatter) {
  const GoldenCase golden = read_golden_case(GetParam());
  const auto sequences = ids_of(golden);
  for (const tensor::DType dtype : {tensor::DType::kF32, tensor::DType::kBF16}) {
    Outcome first;
    for (const int threads : {1, 2, 3}) {
      GoldenModel model(golden, {.dtype = dtype, .threads = threads, .numeric = {}});
      Outcome outcome = run_steps(model, sequences, in_company(sequences, 4));
      if (threads == 1) {
        first = std::move(outcome);
        continue;
      }
      EXPECT_EQ(outcome.logits, first.logits) << threads << " threads";
      EXPECT_EQ(outcome.selected, first.selected) << threads << " threads";
    }
  }
}

// After a prefix hit the last cached row is computed again: same logits, and nothing is written.
TEST_P(GlmMoeDsa, RepeatedRowsGiveTheSameAndWriteNothing) {
  const GoldenCase golden = read_golden_case(GetParam());
  GoldenModel model(golden, {.dtype = tensor::DType::kBF16, .threads = 2, .numeric = {}});
  const std::vector<Ids> sequences = {golden.sequences.front().ids};
  const size_t length = sequences[0].size();
  const size_t cut = length / 2;
  const Outcome whole = run_steps(model, sequences, one_by_one(sequences));
  const Outcome repeated = run_steps(model, sequences,
                                     {{{.sequence = 0, .count = cut}},
                                      {{.sequence = 0, .count = 2 + length - cut, .repeated = 2}}});
  EXPECT_EQ(repeated.logits, whole.logits);
  const auto first =
      whole.logits[0].begin() + static_cast<ptrdiff_t>((cut - 2) * model.vocabulary());
  EXPECT_TRUE(
      std::ranges::equal(repeated.repeated_logits[0], std::span(first, 2 * model.vocabulary())));
}

INSTANTIATE_TEST_SUITE_P(Cases, GlmMoeDsa, testing::ValuesIn(golden_case_names()),
                         [](const auto& golden) { return golden.param; });

// Low precision is compared with f32 by operation elsewhere; here only that it is near at all.
TEST(GlmMoeDsaPrecision, ForcedTypesStayNear) {
  const GoldenCase golden = read_golden_case("multiples_of_32");
  const std::vector<Ids> sequences = {{golden.sequences.front().ids.front()}};
  GoldenModel exact(golden, {});
  const auto want = run_steps(exact, sequences, one_by_one(sequences)).logits[0];
  using KvType = engine::NumericOptions::KvType;
  for (const auto& numeric : {engine::NumericOptions{.activations = model::ActivationChoice::kBF16},
                              engine::NumericOptions{.kv_type = KvType::kBF16}}) {
    GoldenModel model(golden, {.dtype = tensor::DType::kF32, .threads = 1, .numeric = numeric});
    const auto got = run_steps(model, sequences, one_by_one(sequences)).logits[0];
    EXPECT_NE(got, want);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.2);
  }
}

}  // namespace
}  // namespace ingot::parity
