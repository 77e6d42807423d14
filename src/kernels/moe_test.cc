#include "kernels/moe.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "kernels/linear.h"
#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

enum class Routed { kMixed, kAllToOne, kLastOnly };

struct Case {
  int64_t hidden;
  int64_t intermediate;
  int64_t experts;
  int64_t topk;
  int64_t rows;
  Routed routed;
};

constexpr Case kCases[] = {
    {70, 34, 6, 3, 5, Routed::kMixed},       {64, 32, 6, 3, 1, Routed::kMixed},
    {96, 64, 6, 3, 5, Routed::kMixed},       {32, 96, 9, 2, 17, Routed::kMixed},
    {160, 32, 4, 1, 101, Routed::kAllToOne}, {64, 64, 5, 2, 7, Routed::kAllToOne},
    {64, 32, 3, 1, 4, Routed::kLastOnly},    {128, 32, 8, 8, 13, Routed::kMixed},
};

// A layer's experts and the rows for them, in the types of a variant.
class MoeProblem {
 public:
  MoeProblem(const MoeUse::Kind& kind, const Case& shape)
      : kind_(kind),
        shape_(shape),
        x_(kind.activation, random_values("x", shape.rows * shape.hidden), shape.rows,
           shape.hidden),
        weights_(random_values("weights", shape.rows * shape.topk)) {
    for (int64_t e = 0; e < shape.experts; ++e) {
      const auto add = [&](const char* name, int64_t rows, int64_t cols) {
        matrices_.emplace_back(
            kind.weight, random_values(name + std::to_string(e), rows * cols, 0.2), rows, cols);
      };
      add("gate", shape.intermediate, shape.hidden);
      add("up", shape.intermediate, shape.hidden);
      add("down", shape.hidden, shape.intermediate);
    }
    for (int32_t i = 0; i < shape.rows * shape.topk; ++i) experts_.push_back(expert_of(i));
  }

  std::vector<float> run(const MoeVariant& variant, int64_t first, int64_t count, int threads) {
    std::vector<MlpWeights> experts;
    for (size_t e = 0; e < static_cast<size_t>(shape_.experts); ++e) {
      const WeightLayout layout = kind_.layout;
      experts.push_back({.gate = matrices_[e * 3].weight(layout),
                         .up = matrices_[e * 3 + 1].weight(layout),
                         .down = matrices_[e * 3 + 2].weight(layout)});
    }
    const int64_t pairs = count * shape_.topk;
    std::vector<float> gated(static_cast<size_t>(pairs * 2 * shape_.intermediate));
    std::vector<std::byte> encoded(
        static_cast<size_t>(pairs * encoded_row_bytes_max(shape_.intermediate)));
    std::vector<int32_t> order(static_cast<size_t>(pairs + shape_.experts + 1), -1);
    std::vector<float> sums(static_cast<size_t>(threads * pairs * kMoeSlabColumns));
    std::vector<float> out(static_cast<size_t>(count * shape_.hidden), -1.0f);
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(context, {.x = x_.view(first, count),
                            .routing = {.experts_per_token = shape_.topk,
                                        .experts = experts_.data() + first * shape_.topk,
                                        .weights = weights_.data() + first * shape_.topk},
                            .experts = experts,
                            .out = out.data(),
                            .gated = gated.data(),
                            .encoded = encoded.data(),
                            .order = order.data(),
                            .sums = sums.data()});
    });
    return out;
  }

  // What a row must give, [kHidden].
  std::vector<double> expected(int64_t row) const {
    const auto product = [](const float* a, const float* b, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
      return sum;
    };
    const float* x = x_.decoded().data() + row * shape_.hidden;
    std::vector<double> total(static_cast<size_t>(shape_.hidden), 0);
    for (int64_t k = 0; k < shape_.topk; ++k) {
      const auto pair = static_cast<size_t>(row * shape_.topk + k);
      const auto* expert = &matrices_[static_cast<size_t>(experts_[pair]) * 3];
      std::vector<float> middle;
      for (int64_t i = 0; i < shape_.intermediate; ++i) {
        const double g = product(expert[0].decoded().data() + i * shape_.hidden, x, shape_.hidden);
        const double u = product(expert[1].decoded().data() + i * shape_.hidden, x, shape_.hidden);
        middle.push_back(static_cast<float>(g / (1 + std::exp(-g)) * u));
      }
      const StoredActivations encoded(kind_.activation, middle, 1, shape_.intermediate);
      for (int64_t o = 0; o < shape_.hidden; ++o) {
        total[static_cast<size_t>(o)] +=
            weights_[pair] * product(expert[2].decoded().data() + o * shape_.intermediate,
                                     encoded.decoded().data(), shape_.intermediate);
      }
    }
    return total;
  }

 private:
  // An expert of no pair is among the mixed ones too: the last but one.
  int32_t expert_of(int32_t pair) const {
    const auto experts = static_cast<int32_t>(shape_.experts);
    switch (shape_.routed) {
      case Routed::kMixed: {
        const int32_t expert = (pair * 5 + pair / 4) % experts;
        return experts > shape_.topk + 1 && expert == experts - 2 ? 0 : expert;
      }
      case Routed::kAllToOne:
        return 1;
      case Routed::kLastOnly:
        return experts - 1;
    }
    return 0;
  }

  MoeUse::Kind kind_;
  Case shape_;
  std::vector<StoredMatrix> matrices_;  // gate, up and down of every expert
  StoredActivations x_;
  std::vector<int32_t> experts_;
  std::vector<float> weights_;
};

// In f32 only sums round: to 1e-6 of results of about 10, and of the largest of a row where that is
// more. Encoding the middle may round a value the other way than here: half a bit of bf16, or a
// step of int8, of a few products of weights of 0.2.
double tolerance(ActivationType type, const std::vector<double>& row) {
  double largest = 10;
  for (const double value : row) largest = std::max(largest, std::abs(value));
  if (type == ActivationType::kF32) return 1e-6 * largest;
  return (type == ActivationType::kBF16 ? 6e-4 : 6e-3) * largest;
}

// Calls check(variant, shape, problem) for everything that this processor can run.
template <typename Check>
void for_every_variant(const Check& check) {
  int tried = 0;
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    for (const Case& shape : kCases) {
      const MoeUse use{.kind = variant.kind,
                       .hidden = shape.hidden,
                       .intermediate = shape.intermediate,
                       .num_experts = shape.experts};
      if (!variant.refuses(use).empty()) continue;
      SCOPED_TRACE(std::string(variant.name) + " " + std::to_string(shape.rows) + " rows of " +
                   std::to_string(shape.hidden));
      MoeProblem problem(variant.kind, shape);
      check(variant, shape, problem);
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

TEST(Moe, EveryVariantAgreesWithDouble) {
  for_every_variant([](const MoeVariant& variant, const Case& shape, MoeProblem& problem) {
    const auto out = problem.run(variant, 0, shape.rows, 1);
    for (int64_t row = 0; row < shape.rows; ++row) {
      const auto want = problem.expected(row);
      for (size_t o = 0; o < want.size(); ++o) {
        EXPECT_NEAR(out[static_cast<size_t>(row * shape.hidden) + o], want[o],
                    tolerance(variant.kind.activation, want));
      }
    }
  });
}

TEST(Moe, NeitherBatchNorThreadsMatter) {
  for_every_variant([](const MoeVariant& variant, const Case& shape, MoeProblem& problem) {
    const auto together = problem.run(variant, 0, shape.rows, 1);
    EXPECT_EQ(problem.run(variant, 0, shape.rows, 2), together);
    EXPECT_EQ(problem.run(variant, 0, shape.rows, 3), together);
    for (int64_t row = 0; row < shape.rows; row += 3) {
      const auto first = together.begin() + row * shape.hidden;
      EXPECT_EQ(problem.run(variant, row, 1, 2), std::vector<float>(first, first + shape.hidden));
    }
  });
}

// Which layout a matrix is held in is decided by what linear layers read.
TEST(Moe, ReadsTheLayoutsThatLinearLayersRead) {
  for (const LinearVariant& linear : linear_variants()) {
    const auto variants = moe_variants();
    EXPECT_TRUE(std::any_of(variants.begin(), variants.end(), [&](const MoeVariant& moe) {
      return moe.target == linear.target && moe.kind.weight == linear.kind.weight &&
             moe.kind.activation == linear.kind.activation && moe.kind.layout == linear.kind.layout;
    })) << linear.name;
  }
}

TEST(Moe, EveryPairOfFormatsHasAReference) {
  for (int format = 0; format <= static_cast<int>(WeightFormat::kMxfp4); ++format) {
    for (int type = 0; type <= static_cast<int>(ActivationType::kInt8); ++type) {
      LedgerEntry entry;
      const MoeUse use{
          .kind = {static_cast<WeightFormat>(format), static_cast<ActivationType>(type)},
          .hidden = 2,
          .intermediate = 2,
          .num_experts = 1};
      EXPECT_NE(select_variant(moe_variants(), use, Target::kReference, entry), nullptr);
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
