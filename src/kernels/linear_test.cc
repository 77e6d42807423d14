#include "kernels/linear.h"

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

struct Case {
  int64_t rows;
  int64_t out;
  int64_t in;
};

constexpr Case kCases[] = {
    {1, 1, 1},     {1, 5, 7},     {3, 4, 8},     {2, 9, 31},     {5, 16, 32},
    {4, 3, 33},    {1, 64, 256},  {7, 13, 100},  {9, 33, 65},    {2, 130, 40},
    {3, 129, 260}, {1, 6, 2},     {2, 7, 30},    {1, 5, 34},     {1, 1, 32},
    {2, 9, 64},    {3, 40, 96},   {5, 33, 288},  {6, 17, 320},   {7, 8, 32},
    {11, 24, 160}, {13, 70, 544}, {37, 130, 64}, {100, 18, 288}, {197, 12, 96}};

// MXFP4 puts two values into a byte.
bool can_store(WeightFormat format, const Case& shape) {
  return format != WeightFormat::kMxfp4 || shape.in % 2 == 0;
}

// One use of a linear layer in the types of a variant, with what it must give in double.
class LinearProblem {
 public:
  LinearProblem(const LinearUse::Kind& kind, const Case& shape)
      : shape_(shape),
        weight_(kind.weight, random_values("weight", shape.out * shape.in), shape.out, shape.in),
        held_(weight_.weight(kind.layout)),
        input_(kind.activation, random_values("input", shape.rows * shape.in), shape.rows,
               shape.in) {}

  // y of rows [first, first + count), on a team of `threads`.
  std::vector<float> run(LinearFunction function, int64_t first, int64_t count, int threads,
                         Output output = Output::kStore) const {
    std::vector<float> y(static_cast<size_t>(count * shape_.out), 0.5f);
    run_on_team(threads, [&](const ExecutionContext& context) {
      function(context, {.x = input_.view(first, count),
                         .weight = held_,
                         .y = y.data(),
                         .y_stride = shape_.out,
                         .output = output});
    });
    return y;
  }

  double expected(int64_t row, int64_t out) const {
    const float* w = weight_.decoded().data() + out * shape_.in;
    const float* x = input_.decoded().data() + row * shape_.in;
    double sum = 0;
    for (int64_t k = 0; k < shape_.in; ++k) sum += static_cast<double>(w[k]) * x[k];
    return sum;
  }

  // For MXFP4 and int8: the products summed as integers, block by block, and only then scaled.
  float expected_of_integers(int64_t row, int64_t out) const {
    const std::byte* w = weight_.data().data() + out * (shape_.in / 2);
    const int64_t blocks = (shape_.in + 31) / 32;
    const auto* x = reinterpret_cast<const Int8Block*>(input_.data().data()) + row * blocks;
    float sum = 0;
    for (int64_t block = 0; block < blocks; ++block) {
      int64_t doubled = 0;
      for (int64_t k = block * 32; k < std::min(block * 32 + 32, shape_.in); ++k) {
        const auto code = static_cast<int>(w[k / 2]) >> (k % 2 * 4) & 15;
        const auto magnitude = static_cast<int64_t>(2 * kMagnitudesE2M1[code & 7]);
        doubled += (code >= 8 ? -magnitude : magnitude) * x[block].values[k % 32];
      }
      const auto w_scale =
          static_cast<int>(weight_.scales()[static_cast<size_t>(out * blocks + block)]);
      sum += std::ldexp(static_cast<float>(doubled), w_scale - 127 - 1) * x[block].scale;
    }
    return sum;
  }

 private:
  Case shape_;
  StoredMatrix weight_;
  Weight held_;
  StoredActivations input_;
};

// Calls check(variant, shape, problem) for everything that this processor can run.
template <typename Check>
void for_every_variant(const Check& check) {
  int tried = 0;
  for (const LinearVariant& variant : linear_variants()) {
    if (variant.target > detect_target()) continue;
    for (const Case& shape : kCases) {
      if (!can_store(variant.kind.weight, shape)) continue;
      const LinearUse use{.kind = variant.kind, .out = shape.out, .in = shape.in};
      if (!variant.refuses(use).empty()) continue;
      SCOPED_TRACE(std::string(variant.name) + " " + std::to_string(shape.rows) + "x" +
                   std::to_string(shape.out) + "x" + std::to_string(shape.in));
      check(variant, shape, LinearProblem(variant.kind, shape));
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

// Both sides multiply the same decoded numbers of about one; sums of n products of that size in f32
// are off by a few roundings of 6e-8 times sqrt(n), scales included.
TEST(Linear, EveryVariantAgreesWithDouble) {
  for_every_variant([](const LinearVariant& variant, const Case& shape, const LinearProblem& p) {
    const std::vector<float> y = p.run(variant.run, 0, shape.rows, 1);
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int64_t o = 0; o < shape.out; ++o) {
        EXPECT_NEAR(y[static_cast<size_t>(row * shape.out + o)], p.expected(row, o),
                    1e-6 * std::sqrt(static_cast<double>(shape.in)) * 4);
      }
    }
  });
}

TEST(Linear, BlocksOfMxfp4AndInt8AreExactIntegers) {
  int tried = 0;
  for_every_variant([&](const LinearVariant& variant, const Case& shape, const LinearProblem& p) {
    const LinearUse::Kind integers{WeightFormat::kMxfp4, ActivationType::kInt8};
    if (!(variant.kind == integers) || variant.target != Target::kReference) return;
    ++tried;
    const std::vector<float> y = p.run(variant.run, 0, shape.rows, 1);
    for (int64_t row = 0; row < shape.rows; ++row) {
      for (int64_t o = 0; o < shape.out; ++o) {
        EXPECT_EQ(y[static_cast<size_t>(row * shape.out + o)], p.expected_of_integers(row, o));
      }
    }
  });
  EXPECT_GT(tried, 0);
}

TEST(Linear, RowsDoNotDependOnTheBatch) {
  for_every_variant([](const LinearVariant& variant, const Case& shape, const LinearProblem& p) {
    const std::vector<float> together = p.run(variant.run, 0, shape.rows, 1);
    for (int64_t row = 0; row < shape.rows; ++row) {
      const std::vector<float> alone = p.run(variant.run, row, 1, 1);
      const auto first = together.begin() + row * shape.out;
      EXPECT_EQ(alone, std::vector<float>(first, first + shape.out));
    }
  });
}

TEST(Linear, ThreadsDoNotChangeABit) {
  for_every_variant([](const LinearVariant& variant, const Case& shape, const LinearProblem& p) {
    const std::vector<float> alone = p.run(variant.run, 0, shape.rows, 1);
    EXPECT_EQ(p.run(variant.run, 0, shape.rows, 2), alone);
    EXPECT_EQ(p.run(variant.run, 0, shape.rows, 3), alone);
  });
}

TEST(Linear, AddsToWhatIsThere) {
  for_every_variant([](const LinearVariant& variant, const Case& shape, const LinearProblem& p) {
    std::vector<float> stored = p.run(variant.run, 0, shape.rows, 1);
    const std::vector<float> added = p.run(variant.run, 0, shape.rows, 1, Output::kAdd);
    for (float& value : stored) value = 0.5f + value;
    EXPECT_EQ(added, stored);
  });
}

TEST(Linear, EveryPairOfFormatsHasAReferenceThatTakesEveryShape) {
  for (int format = 0; format <= static_cast<int>(WeightFormat::kMxfp4); ++format) {
    for (int type = 0; type <= static_cast<int>(ActivationType::kInt8); ++type) {
      LedgerEntry entry;
      const LinearUse odd{
          .kind = {static_cast<WeightFormat>(format), static_cast<ActivationType>(type)},
          .out = 1,
          .in = 1};
      const auto* chosen = select_variant(linear_variants(), odd, Target::kReference, entry);
      ASSERT_NE(chosen, nullptr) << format << " " << type;
      EXPECT_EQ(chosen->target, Target::kReference);
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
