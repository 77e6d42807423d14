#include "kernels/linear.h"

#include <cmath>

#include <gtest/gtest.h>

#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

struct Case {
  int64_t rows;
  int64_t out;
  int64_t in;
};

constexpr Case kCases[] = {{1, 1, 1},  {1, 5, 7},    {3, 4, 8},    {2, 9, 31},  {5, 16, 32},
                           {4, 3, 33}, {1, 64, 256}, {7, 13, 100}, {9, 33, 65}, {2, 130, 40}};

// One use of a linear layer in the types of a variant, with what it must give in double.
class LinearProblem {
 public:
  LinearProblem(const LinearUse::Kind& kind, const Case& shape) : kind_(kind), shape_(shape) {
    const auto w = random_values("weight", shape.out * shape.in);
    const auto x = random_values("input", shape.rows * shape.in);
    f32_weight_ = w;
    bf16_weight_ = rounded_to_bf16(w);
    f16_weight_ = rounded_to_f16(w);
    f32_input_ = x;
    bf16_input_ = rounded_to_bf16(x);
  }

  // y of rows [first, first + count), on a team of `threads`.
  std::vector<float> run(LinearFunction function, int64_t first, int64_t count, int threads,
                         Output output = Output::kStore) const {
    std::vector<float> y(static_cast<size_t>(count * shape_.out), 0.5f);
    run_on_team(threads, [&](const ExecutionContext& context) {
      function(context, {.x = {.type = kind_.activation,
                               .rows = count,
                               .cols = shape_.in,
                               .data = input_data() +
                                       first * activation_row_bytes(kind_.activation, shape_.in)},
                         .weight = {.format = kind_.weight,
                                    .rows = shape_.out,
                                    .cols = shape_.in,
                                    .data = weight_data()},
                         .y = y.data(),
                         .y_stride = shape_.out,
                         .output = output});
    });
    return y;
  }

  double expected(int64_t row, int64_t out) const {
    const auto w = weight_values();
    const auto x = kind_.activation == ActivationType::kF32 ? f32_input_ : widened(bf16_input_);
    double sum = 0;
    for (int64_t k = 0; k < shape_.in; ++k) {
      sum += static_cast<double>(w[static_cast<size_t>(out * shape_.in + k)]) *
             x[static_cast<size_t>(row * shape_.in + k)];
    }
    return sum;
  }

 private:
  std::vector<float> weight_values() const {
    if (kind_.weight == WeightFormat::kF32) return f32_weight_;
    return kind_.weight == WeightFormat::kBF16 ? widened(bf16_weight_) : widened(f16_weight_);
  }
  const void* weight_data() const {
    if (kind_.weight == WeightFormat::kF32) return f32_weight_.data();
    return kind_.weight == WeightFormat::kBF16 ? static_cast<const void*>(bf16_weight_.data())
                                               : f16_weight_.data();
  }
  const std::byte* input_data() const {
    return kind_.activation == ActivationType::kF32
               ? reinterpret_cast<const std::byte*>(f32_input_.data())
               : reinterpret_cast<const std::byte*>(bf16_input_.data());
  }

  LinearUse::Kind kind_;
  Case shape_;
  std::vector<float> f32_weight_;
  std::vector<tensor::BFloat16> bf16_weight_;
  std::vector<tensor::Float16> f16_weight_;
  std::vector<float> f32_input_;
  std::vector<tensor::BFloat16> bf16_input_;
};

// Calls check(variant, shape, problem) for everything that this processor can run.
template <typename Check>
void for_every_variant(const Check& check) {
  int tried = 0;
  for (const LinearVariant& variant : linear_variants()) {
    if (variant.target > detect_target()) continue;
    for (const Case& shape : kCases) {
      SCOPED_TRACE(std::string(variant.name) + " " + std::to_string(shape.rows) + "x" +
                   std::to_string(shape.out) + "x" + std::to_string(shape.in));
      check(variant, shape, LinearProblem(variant.kind, shape));
      ++tried;
    }
  }
  EXPECT_GT(tried, 0);
}

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

TEST(Linear, EveryKindHasAReferenceThatTakesEveryShape) {
  for (const LinearVariant& variant : linear_variants()) {
    LedgerEntry entry;
    const LinearUse odd{.kind = variant.kind, .out = 1, .in = 1};
    const auto* chosen = select_variant(linear_variants(), odd, Target::kReference, entry);
    ASSERT_NE(chosen, nullptr) << variant.name;
    EXPECT_EQ(chosen->target, Target::kReference);
  }
}

}  // namespace
}  // namespace ingot::kernels
