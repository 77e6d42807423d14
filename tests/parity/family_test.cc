#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "golden_model.h"
#include "steps.h"

namespace ingot::parity {
namespace {

class Family : public testing::TestWithParam<std::string> {};

// Golden logits come from float64; an f32 engine stays within a few 1e-5 of them.
TEST_P(Family, LogitsSelectionsAndDraftsEqualTheOracle) {
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
    EXPECT_EQ(first_difference(outcome.selected[s], want.selected), "") << "sequence " << s;
    EXPECT_EQ(outcome.drafts[s], want.draft) << "sequence " << s;
  }
}

void expect_steps_do_not_matter(const GoldenModel::Options& options, const std::string& name) {
  const GoldenCase golden = read_golden_case(name);
  GoldenModel model(golden, options);
  expect_steps_do_not_matter(model, golden);
}

TEST_P(Family, StepsDoNotMatterInF32) {
  expect_steps_do_not_matter({.dtype = tensor::DType::kF32, .threads = 1, .numeric = {}},
                             GetParam());
}

TEST_P(Family, StepsDoNotMatterInBF16) {
  expect_steps_do_not_matter({.dtype = tensor::DType::kBF16, .threads = 2, .numeric = {}},
                             GetParam());
}

TEST_P(Family, ThreadsDoNotMatter) {
  const GoldenCase golden = read_golden_case(GetParam());
  const auto sequences = ids_of(golden, kLongest);
  for (const tensor::DType dtype : {tensor::DType::kF32, tensor::DType::kBF16}) {
    Outcome first;
    for (const int threads : {1, 2, 3}) {
      GoldenModel model(golden, {.dtype = dtype, .threads = threads, .numeric = {}});
      Outcome outcome = run_steps(model, sequences, in_company(sequences, 4));
      if (threads == 1) {
        first = std::move(outcome);
        continue;
      }
      EXPECT_TRUE(outcome.logits == first.logits) << threads << " threads";
      EXPECT_TRUE(outcome.selected == first.selected) << threads << " threads";
      EXPECT_EQ(outcome.drafts, first.drafts) << threads << " threads";
    }
  }
}

// After a prefix hit the last cached row is computed again: same logits, and nothing is written.
TEST_P(Family, RepeatedRowsGiveTheSameAndWriteNothing) {
  const GoldenCase golden = read_golden_case(GetParam());
  GoldenModel model(golden, {.dtype = tensor::DType::kBF16, .threads = 2, .numeric = {}});
  const std::vector<Ids> sequences = {golden.sequences.front().ids};
  const size_t length = sequences[0].size();
  const size_t cut = length / 2;
  const Outcome whole = run_steps(model, sequences, one_by_one(sequences));
  const Outcome repeated = run_steps(model, sequences,
                                     {{{.sequence = 0, .count = cut}},
                                      {{.sequence = 0, .count = 2 + length - cut, .repeated = 2}}});
  EXPECT_TRUE(repeated.logits == whole.logits);
  EXPECT_EQ(repeated.drafts, whole.drafts);
  const auto first =
      whole.logits[0].begin() + static_cast<ptrdiff_t>((cut - 2) * model.vocabulary());
  EXPECT_TRUE(
      std::ranges::equal(repeated.repeated_logits[0], std::span(first, 2 * model.vocabulary())));
}

INSTANTIATE_TEST_SUITE_P(Golden, Family, testing::ValuesIn(golden_case_names()),
                         [](const auto& golden) {
                           std::string name = golden.param;
                           std::ranges::replace(name, '/', '_');
                           return name;
                         });

// Low precision is compared with f32 by operation elsewhere; here only that it is near at all.
TEST(Precision, ForcedTypesStayNear) {
  const GoldenCase golden = read_golden_case("glm_moe_dsa/multiples_of_32");
  const std::vector<Ids> sequences = {{golden.sequences.front().ids.front()}};
  GoldenModel exact(golden, {});
  const auto want = run_steps(exact, sequences, one_by_one(sequences)).logits[0];
  using KvType = engine::NumericOptions::KvType;
  for (const auto& numeric : {engine::NumericOptions{.activations = model::ActivationChoice::kBF16},
                              engine::NumericOptions{.kv_type = KvType::kBF16}}) {
    GoldenModel model(golden, {.dtype = tensor::DType::kF32, .threads = 1, .numeric = numeric});
    const auto got = run_steps(model, sequences, one_by_one(sequences)).logits[0];
    EXPECT_FALSE(got == want);
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 0.2);
  }
}

}  // namespace
}  // namespace ingot::parity
