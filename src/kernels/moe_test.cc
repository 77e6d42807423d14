#include "kernels/moe.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/test_team.h"
#include "kernels/weight_fixture.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kHidden = 70;
constexpr int64_t kIntermediate = 34;
constexpr int64_t kExperts = 6;
constexpr int64_t kTopk = 3;
constexpr int64_t kRows = 5;

// A layer's experts and the rows for them, in the types of a variant.
class MoeProblem {
 public:
  explicit MoeProblem(const MoeUse::Kind& kind)
      : kind_(kind),
        x_(kind.activation, random_values("x", kRows * kHidden), kRows, kHidden),
        weights_(random_values("weights", kRows * kTopk)) {
    for (int64_t e = 0; e < kExperts; ++e) {
      const auto add = [&](const char* name, int64_t rows, int64_t cols) {
        matrices_.emplace_back(
            kind.weight, random_values(name + std::to_string(e), rows * cols, 0.2), rows, cols);
      };
      add("gate", kIntermediate, kHidden);
      add("up", kIntermediate, kHidden);
      add("down", kHidden, kIntermediate);
    }
    for (int32_t i = 0; i < kRows * kTopk; ++i) experts_.push_back((i * 5 + i / 4) % kExperts);
  }

  std::vector<float> run(const MoeVariant& variant, int64_t first, int64_t count, int threads) {
    std::vector<MlpWeights> experts;
    for (size_t e = 0; e < kExperts; ++e) {
      experts.push_back({.gate = matrices_[e * 3].weight(),
                         .up = matrices_[e * 3 + 1].weight(),
                         .down = matrices_[e * 3 + 2].weight()});
    }
    std::vector<float> gated(static_cast<size_t>(count * kTopk * 2 * kIntermediate));
    std::vector<std::byte> encoded(
        static_cast<size_t>(count * kTopk * encoded_row_bytes_max(kIntermediate)));
    std::vector<float> out(static_cast<size_t>(count * kHidden), -1.0f);
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(context, {.x = x_.view(first, count),
                            .routing = {.experts_per_token = kTopk,
                                        .experts = experts_.data() + first * kTopk,
                                        .weights = weights_.data() + first * kTopk},
                            .experts = experts,
                            .gated = gated.data(),
                            .encoded = encoded.data(),
                            .out = out.data()});
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
    const float* x = x_.decoded().data() + row * kHidden;
    std::vector<double> total(kHidden, 0);
    for (int64_t k = 0; k < kTopk; ++k) {
      const auto pair = static_cast<size_t>(row * kTopk + k);
      const auto* expert = &matrices_[static_cast<size_t>(experts_[pair]) * 3];
      std::vector<float> middle;
      for (int64_t i = 0; i < kIntermediate; ++i) {
        const double g = product(expert[0].decoded().data() + i * kHidden, x, kHidden);
        const double u = product(expert[1].decoded().data() + i * kHidden, x, kHidden);
        middle.push_back(static_cast<float>(g / (1 + std::exp(-g)) * u));
      }
      const StoredActivations encoded(kind_.activation, middle, 1, kIntermediate);
      for (int64_t o = 0; o < kHidden; ++o) {
        total[static_cast<size_t>(o)] +=
            weights_[pair] * product(expert[2].decoded().data() + o * kIntermediate,
                                     encoded.decoded().data(), kIntermediate);
      }
    }
    return total;
  }

 private:
  MoeUse::Kind kind_;
  std::vector<StoredMatrix> matrices_;  // gate, up and down of every expert
  StoredActivations x_;
  std::vector<int32_t> experts_;
  std::vector<float> weights_;
};

// In f32 only sums round, to 1e-6 of results of about 10. Encoding the middle may round a value the
// other way than here: half a bit of bf16, or a step of int8, of a few products of weights of 0.2.
double tolerance(ActivationType type) {
  if (type == ActivationType::kF32) return 1e-5;
  return type == ActivationType::kBF16 ? 2e-3 : 2e-2;
}

TEST(Moe, EveryVariantAgreesWithDouble) {
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    MoeProblem problem(variant.kind);
    const auto out = problem.run(variant, 0, kRows, 1);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto want = problem.expected(row);
      for (size_t o = 0; o < kHidden; ++o) {
        EXPECT_NEAR(out[static_cast<size_t>(row * kHidden) + o], want[o],
                    tolerance(variant.kind.activation))
            << variant.name;
      }
    }
  }
}

TEST(Moe, NeitherBatchNorThreadsMatter) {
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    MoeProblem problem(variant.kind);
    const auto together = problem.run(variant, 0, kRows, 1);
    EXPECT_EQ(problem.run(variant, 0, kRows, 2), together);
    EXPECT_EQ(problem.run(variant, 0, kRows, 3), together);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto first = together.begin() + row * kHidden;
      EXPECT_EQ(problem.run(variant, row, 1, 2), std::vector<float>(first, first + kHidden));
    }
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

TEST(SiluMultiply, EncodesWhatTheNextLayerReads) {
  constexpr int64_t kSiluRows = 3;
  constexpr int64_t kCols = 37;
  const auto gate = random_values("gate", kSiluRows * kCols);
  const auto up = random_values("up", kSiluRows * kCols);
  for (const int threads : {1, 2}) {
    auto product = gate;
    run_on_team(threads, [&](const ExecutionContext& context) {
      const auto f32 = silu_multiply(context, product.data(), up.data(), kSiluRows, kCols,
                                     ActivationType::kF32, nullptr);
      EXPECT_EQ(f32.data, product.data());
    });
    for (size_t i = 0; i < product.size(); ++i) {
      const double want = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i];
      EXPECT_NEAR(product[i], want, 1e-6);
    }
    for (const ActivationType type : {ActivationType::kBF16, ActivationType::kInt8}) {
      const StoredActivations want(type, product, kSiluRows, kCols);
      auto scratch = gate;
      std::vector<std::byte> encoded(want.data().size());
      run_on_team(threads, [&](const ExecutionContext& context) {
        const auto x = silu_multiply(context, scratch.data(), up.data(), kSiluRows, kCols, type,
                                     encoded.data());
        EXPECT_EQ(x.data, encoded.data());
      });
      EXPECT_EQ(encoded, want.data()) << name(type);
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
