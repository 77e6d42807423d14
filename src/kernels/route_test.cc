#include "kernels/route.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include "kernels/linear_reference.h"
#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kHidden = 20;

struct Setting {
  int64_t rows = 3;
  int64_t experts = 12;
  int64_t topk = 4;
  int64_t groups = 1;
  int64_t topk_groups = 1;
  bool normalize = true;
};

struct Routed {
  std::vector<int32_t> experts;
  std::vector<float> weights;
  bool operator==(const Routed&) const = default;
};

Routed run(const Setting& s, const std::vector<float>& x, const std::vector<float>& gate,
           const std::vector<float>& bias, int threads, Target target = Target::kReference) {
  Routed routed{std::vector<int32_t>(static_cast<size_t>(s.rows * s.topk)),
                std::vector<float>(static_cast<size_t>(s.rows * s.topk))};
  std::vector<float> choices(static_cast<size_t>(s.rows * s.experts));
  std::vector<float> affinities(choices.size());
  run_on_team(
      threads,
      [&](const ExecutionContext& context) {
        route(context, {.x = x.data(),
                        .rows = s.rows,
                        .gate = {.rows = s.experts, .cols = kHidden, .data = gate.data()},
                        .linear = linear_reference<F32WeightRow, F32ActivationRow>,
                        .bias = bias.data(),
                        .num_groups = s.groups,
                        .topk_groups = s.topk_groups,
                        .normalize = s.normalize,
                        .scale = 2.5f,
                        .choices = choices.data(),
                        .affinities = affinities.data(),
                        .routing = {.experts_per_token = s.topk,
                                    .experts = routed.experts.data(),
                                    .weights = routed.weights.data()}});
      },
      target);
  return routed;
}

// The published rule, by sorting: the expected experts and weights of one row.
void expect_row(const Setting& s, const float* x, const std::vector<float>& gate,
                const std::vector<float>& bias, const int32_t* experts, const float* weights) {
  std::vector<double> affinity;
  std::vector<double> choice;
  for (int64_t e = 0; e < s.experts; ++e) {
    double logit = 0;
    for (int64_t i = 0; i < kHidden; ++i) {
      logit += static_cast<double>(x[i]) * gate[static_cast<size_t>(e * kHidden + i)];
    }
    affinity.push_back(1 / (1 + std::exp(-logit)));
    choice.push_back(affinity.back() + bias[static_cast<size_t>(e)]);
  }
  const int64_t size = s.experts / s.groups;
  std::vector<std::pair<double, int64_t>> groups;
  for (int64_t g = 0; g < s.groups; ++g) {
    std::vector<double> members(choice.begin() + g * size, choice.begin() + (g + 1) * size);
    std::ranges::sort(members, std::greater<>());
    groups.emplace_back(members[0] + (size > 1 ? members[1] : 0), g);
  }
  std::ranges::sort(groups, std::greater<>());
  std::vector<int64_t> order;
  for (int64_t kept = 0; kept < s.topk_groups; ++kept) {
    for (int64_t i = 0; i < size; ++i) {
      order.push_back(groups[static_cast<size_t>(kept)].second * size + i);
    }
  }
  std::ranges::sort(order, [&](int64_t a, int64_t b) {
    return choice[static_cast<size_t>(a)] > choice[static_cast<size_t>(b)];
  });
  double sum = 0;
  for (int64_t k = 0; k < s.topk; ++k) {
    sum += affinity[static_cast<size_t>(order[static_cast<size_t>(k)])];
  }
  for (int64_t k = 0; k < s.topk; ++k) {
    const int64_t e = order[static_cast<size_t>(k)];
    EXPECT_EQ(experts[k], e);
    EXPECT_NEAR(weights[k], 2.5 * affinity[static_cast<size_t>(e)] / (s.normalize ? sum : 1), 1e-5);
  }
}

TEST(Route, FollowsThePublishedRule) {
  const Setting settings[] = {
      {},
      {.normalize = false},
      {.groups = 4, .topk_groups = 2},
      {.topk = 1},
      {.groups = 6, .topk_groups = 3, .normalize = false},
      {.rows = 40, .experts = 64, .topk = 8, .groups = 8, .topk_groups = 4}};
  for (const Setting& s : settings) {
    const auto x = random_values("x", s.rows * kHidden);
    const auto gate = random_values("gate", s.experts * kHidden, 0.3);
    const auto bias = random_values("bias", s.experts, 0.1);
    for (const Target target : usable_targets()) {
      const Routed routed = run(s, x, gate, bias, 1, target);
      EXPECT_EQ(run(s, x, gate, bias, 2, target), routed);
      for (int64_t row = 0; row < s.rows; ++row) {
        expect_row(s, x.data() + row * kHidden, gate, bias, routed.experts.data() + row * s.topk,
                   routed.weights.data() + row * s.topk);
      }
    }
  }
}

TEST(Route, BiasSelectsAndDoesNotWeigh) {
  const Setting s{.rows = 1, .experts = 3, .topk = 1, .normalize = false};
  const std::vector<float> x(kHidden, 0.0f);
  const std::vector<float> gate(3 * kHidden, 0.0f);
  const Routed routed = run(s, x, gate, {0.0f, 0.5f, 0.1f}, 1);
  EXPECT_EQ(routed.experts, std::vector<int32_t>{1});
  EXPECT_FLOAT_EQ(routed.weights[0], 2.5f * 0.5f);
}

TEST(Route, EqualChoicesTakeTheLowerExpertAndGroup) {
  const Setting s{.rows = 1, .experts = 8, .topk = 4, .groups = 4, .topk_groups = 2};
  const std::vector<float> x(kHidden, 0.0f);
  const std::vector<float> gate(8 * kHidden, 0.0f);
  for (const Target target : usable_targets()) {
    EXPECT_EQ(run(s, x, gate, std::vector<float>(8, 0.0f), 1, target).experts,
              (std::vector<int32_t>{0, 1, 2, 3}));
  }
}

TEST(Route, NaNGivesValidExperts) {
  const Setting s{.rows = 1};
  const std::vector<float> x(kHidden, std::nanf(""));
  const auto gate = random_values("gate", s.experts * kHidden);
  for (const Target target : usable_targets()) {
    const Routed routed = run(s, x, gate, std::vector<float>(12, 0.0f), 1, target);
    for (const int32_t expert : routed.experts) {
      EXPECT_TRUE(0 <= expert && expert < s.experts);
    }
  }
}

TEST(Route, ArgmaxTakesTheFirstOfEquals) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Target target : usable_targets()) {
    const ArgmaxRow argmax = row_operations(target).argmax;
    const auto of = [&](const std::vector<float>& values) {
      return argmax(values.data(), static_cast<int64_t>(values.size()));
    };
    for (const int64_t count : {1, 7, 8, 9, 64, 100, 257}) {
      auto values = random_values("values", count);
      EXPECT_EQ(of(values), std::ranges::max_element(values) - values.begin());
      for (float& value : values) value = std::round(value);  // many equals
      EXPECT_EQ(of(values), std::ranges::max_element(values) - values.begin());
      const std::vector<float> equal(static_cast<size_t>(count), -3.0f);
      EXPECT_EQ(of(equal), 0);
      const std::vector<float> excluded(static_cast<size_t>(count), -inf);
      EXPECT_EQ(of(excluded), 0);
      std::vector<float> nothing(static_cast<size_t>(count), std::nanf(""));
      EXPECT_EQ(of(nothing), 0);
      nothing.back() = -5;
      EXPECT_EQ(of(nothing), count - 1);
    }
    EXPECT_EQ(of({0.0f, -0.0f}), 0);
    EXPECT_EQ(of({-0.0f, 0.0f}), 0);
    EXPECT_EQ(argmax(nullptr, 0), 0);
  }
}

// The sigmoid over its whole range, in vectors and parts of one; what lies behind stays as it is.
TEST(Route, AffinitiesAreCloseToDouble) {
  for (const Target target : usable_targets()) {
    for (const int64_t count : {0, 1, 5, 8, 13, 256}) {
      auto logits = random_values("logits", count + 8, 20);
      if (count > 4) {
        logits[1] = std::numeric_limits<float>::infinity();
        logits[2] = -std::numeric_limits<float>::infinity();
        logits[3] = -120;
        logits[4] = 120;
      }
      const auto bias = random_values("bias", count + 8);
      auto affinities = logits;
      std::vector<float> choices(logits.size(), -9.0f);
      row_operations(target).affinities(bias.data(), count, affinities.data(), choices.data());
      for (size_t e = 0; e < logits.size(); ++e) {
        if (static_cast<int64_t>(e) >= count) {
          EXPECT_EQ(affinities[e], logits[e]);
          EXPECT_EQ(choices[e], -9.0f);
          continue;
        }
        const double want = 1 / (1 + std::exp(-static_cast<double>(logits[e])));
        EXPECT_NEAR(affinities[e], want, 3e-7 * want + 1e-38) << logits[e];
        EXPECT_EQ(choices[e], affinities[e] + bias[e]);
      }
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
