#include "kernels/moe.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kHidden = 37;
constexpr int64_t kIntermediate = 21;
constexpr int64_t kExperts = 6;
constexpr int64_t kTopk = 3;
constexpr int64_t kRows = 5;

// The same three matrices for every expert, cut from long arrays, in every format.
class MoeProblem {
 public:
  MoeProblem() {
    const int64_t count = kExperts * 3 * kIntermediate * kHidden;
    f32_ = random_values("experts", count, 0.2);
    bf16_ = rounded_to_bf16(f32_);
    f16_ = rounded_to_f16(f32_);
    x_ = random_values("x", kRows * kHidden);
    narrow_x_ = rounded_to_bf16(x_);
    for (int32_t i = 0; i < kRows * kTopk; ++i) experts_.push_back((i * 5 + i / 4) % kExperts);
    weights_ = random_values("weights", kRows * kTopk);
  }

  std::vector<float> run(const MoeVariant& variant, int64_t first, int64_t count, int threads) {
    std::vector<MlpWeights> experts;
    for (int64_t e = 0; e < kExperts; ++e) {
      const auto matrix = [&](int64_t index, int64_t rows, int64_t cols) {
        return Weight{
            .format = variant.kind.weight,
            .rows = rows,
            .cols = cols,
            .data = element(variant.kind.weight, (e * 3 + index) * kIntermediate * kHidden)};
      };
      experts.push_back({.gate = matrix(0, kIntermediate, kHidden),
                         .up = matrix(1, kIntermediate, kHidden),
                         .down = matrix(2, kHidden, kIntermediate)});
    }
    const bool narrow = variant.kind.activation == ActivationType::kBF16;
    std::vector<float> gated(static_cast<size_t>(count * kTopk * 2 * kIntermediate));
    std::vector<tensor::BFloat16> encoded(static_cast<size_t>(count * kTopk * kIntermediate));
    std::vector<float> out(static_cast<size_t>(count * kHidden), -1.0f);
    run_on_team(threads, [&](const ExecutionContext& context) {
      variant.run(
          context,
          {.x = {.type = variant.kind.activation,
                 .rows = count,
                 .cols = kHidden,
                 .data = narrow ? static_cast<const void*>(narrow_x_.data() + first * kHidden)
                                : x_.data() + first * kHidden},
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

  double expected(const MoeVariant& variant, int64_t row, int64_t o) const {
    const auto w = variant.kind.weight == WeightFormat::kF32    ? f32_
                   : variant.kind.weight == WeightFormat::kBF16 ? widened(bf16_)
                                                                : widened(f16_);
    const bool narrow = variant.kind.activation == ActivationType::kBF16;
    const auto x = narrow ? widened(narrow_x_) : x_;
    const auto product = [](const float* a, const float* b, int64_t count) {
      double sum = 0;
      for (int64_t i = 0; i < count; ++i) sum += static_cast<double>(a[i]) * b[i];
      return sum;
    };
    double total = 0;
    for (int64_t k = 0; k < kTopk; ++k) {
      const auto pair = static_cast<size_t>(row * kTopk + k);
      const float* gate = w.data() + experts_[pair] * 3 * kIntermediate * kHidden;
      const float* up = gate + kIntermediate * kHidden;
      const float* down = up + kIntermediate * kHidden;
      std::vector<float> middle;
      for (int64_t i = 0; i < kIntermediate; ++i) {
        const double g = product(gate + i * kHidden, x.data() + row * kHidden, kHidden);
        const double u = product(up + i * kHidden, x.data() + row * kHidden, kHidden);
        const auto value = static_cast<float>(g / (1 + std::exp(-g)) * u);
        middle.push_back(narrow ? tensor::to_f32(tensor::to_bf16(value)) : value);
      }
      total += weights_[pair] * product(down + o * kIntermediate, middle.data(), kIntermediate);
    }
    return total;
  }

 private:
  const void* element(WeightFormat format, int64_t index) const {
    if (format == WeightFormat::kF32) return f32_.data() + index;
    return format == WeightFormat::kBF16 ? static_cast<const void*>(bf16_.data() + index)
                                         : f16_.data() + index;
  }

  std::vector<float> f32_;
  std::vector<tensor::BFloat16> bf16_;
  std::vector<tensor::Float16> f16_;
  std::vector<float> x_;
  std::vector<tensor::BFloat16> narrow_x_;
  std::vector<int32_t> experts_;
  std::vector<float> weights_;
};

TEST(Moe, EveryVariantAgreesWithDouble) {
  MoeProblem problem;
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    const auto out = problem.run(variant, 0, kRows, 1);
    // A bf16 rounding of the middle may fall to the other side: half a bit of a few products.
    const double tolerance = variant.kind.activation == ActivationType::kBF16 ? 2e-3 : 2e-6;
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t o = 0; o < kHidden; ++o) {
        EXPECT_NEAR(out[static_cast<size_t>(row * kHidden + o)], problem.expected(variant, row, o),
                    tolerance)
            << variant.name;
      }
    }
  }
}

TEST(Moe, NeitherBatchNorThreadsMatter) {
  MoeProblem problem;
  for (const MoeVariant& variant : moe_variants()) {
    if (variant.target > detect_target()) continue;
    const auto together = problem.run(variant, 0, kRows, 1);
    EXPECT_EQ(problem.run(variant, 0, kRows, 2), together);
    EXPECT_EQ(problem.run(variant, 0, kRows, 3), together);
    for (int64_t row = 0; row < kRows; ++row) {
      const auto first = together.begin() + row * kHidden;
      EXPECT_EQ(problem.run(variant, row, 1, 2), std::vector<float>(first, first + kHidden));
    }
  }
}

TEST(SiluMultiply, EncodesWhatTheNextLayerReads) {
  const auto gate = random_values("gate", 6);
  const auto up = random_values("up", 6);
  for (const int threads : {1, 2}) {
    auto f32_gate = gate;
    auto bf16_gate = gate;
    std::vector<tensor::BFloat16> encoded(6);
    run_on_team(threads, [&](const ExecutionContext& context) {
      const auto f32 =
          silu_multiply(context, f32_gate.data(), up.data(), 2, 3, ActivationType::kF32, nullptr);
      const auto bf16 = silu_multiply(context, bf16_gate.data(), up.data(), 2, 3,
                                      ActivationType::kBF16, encoded.data());
      EXPECT_EQ(f32.data, f32_gate.data());
      EXPECT_EQ(bf16.data, encoded.data());
    });
    for (size_t i = 0; i < 6; ++i) {
      const double want = gate[i] / (1 + std::exp(-static_cast<double>(gate[i]))) * up[i];
      EXPECT_NEAR(f32_gate[i], want, 1e-6);
      EXPECT_EQ(encoded[i].bits, tensor::to_bf16(f32_gate[i]).bits);
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
