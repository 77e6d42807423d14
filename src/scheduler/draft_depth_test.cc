#include "scheduler/draft_depth.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.h"

namespace ingot::scheduler {
namespace {

// How long a step takes and which drafts are right, on a machine of three costs.
struct Machine {
  double step_seconds = 0.020;   // with no rows
  double row_seconds = 0.0001;   // verified rows, prefill too
  double draft_seconds = 0.001;  // for each position of the chain
  double acceptance = 0.7;       // after an accepted one, everywhere in the chain
  // Depths from here on are 33 times as slow.
  int32_t slow_depth = INT32_MAX;
  double jitter = 0.03;  // standard deviation, of the whole
  double spike_share = 0.2;
  double spike_max = 0.3;  // of the whole; 0.1 at least

  double mean_seconds(int32_t depth, double num_decoding, double num_prefill_tokens) const {
    const double rows = num_decoding * (1 + depth) + num_prefill_tokens;
    const double seconds = step_seconds + row_seconds * rows + draft_seconds * depth;
    return depth >= slow_depth ? 33 * seconds : seconds;
  }

  double goodput(int32_t depth, double num_decoding, double num_prefill_tokens) const {
    double tokens = 1;
    for (int32_t i = 1; i <= depth; ++i) tokens += std::pow(acceptance, i);
    return num_decoding * tokens / mean_seconds(depth, num_decoding, num_prefill_tokens);
  }

  int32_t best_depth(int32_t max_depth, double num_decoding, double num_prefill_tokens) const {
    int32_t best = 0;
    for (int32_t depth = 1; depth <= max_depth; ++depth) {
      if (goodput(depth, num_decoding, num_prefill_tokens) >
          goodput(best, num_decoding, num_prefill_tokens)) {
        best = depth;
      }
    }
    return best;
  }
};

// What a number of steps came to.
struct Outcome {
  int64_t num_steps = 0;
  std::vector<int64_t> num_steps_at;  // by depth
  int32_t usual_depth = 0;            // of most of the last hundred steps
  double tokens = 0;                  // as many as can be expected
  double seconds = 0;                 // likewise
  double best_tokens = 0;             // that the best depth would have drawn in that time

  double regret() const { return 1 - tokens / best_tokens; }
  double share_of_others() const {
    return 1 - static_cast<double>(num_steps_at[static_cast<size_t>(usual_depth)]) /
                   static_cast<double>(num_steps);
  }
};

// Runs steps on a machine, which may be changed between runs.
class Simulation {
 public:
  explicit Simulation(int32_t max_depth, uint64_t seed = 1)
      : max_depth_(max_depth),
        depth_(SpeculationMode::kAuto, max_depth),
        random_(base::random_stream(seed, "machine")) {}

  Outcome run(int64_t num_steps, int32_t num_decoding, int32_t num_prefill_tokens = 0) {
    Outcome outcome{.num_steps = num_steps,
                    .num_steps_at = std::vector<int64_t>(static_cast<size_t>(max_depth_) + 1)};
    const int32_t best = machine.best_depth(max_depth_, num_decoding, num_prefill_tokens);
    for (int64_t i = 0; i < num_steps; ++i) {
      const int32_t depth = step(num_decoding, num_prefill_tokens);
      ++outcome.num_steps_at[static_cast<size_t>(depth)];
      const double seconds = machine.mean_seconds(depth, num_decoding, num_prefill_tokens);
      outcome.seconds += seconds;
      outcome.tokens += seconds * machine.goodput(depth, num_decoding, num_prefill_tokens);
      outcome.best_tokens += seconds * machine.goodput(best, num_decoding, num_prefill_tokens);
    }
    outcome.usual_depth = usual_depth();
    return outcome;
  }

  // The depth that it took.
  int32_t step(int32_t num_decoding, int32_t num_prefill_tokens) {
    const int32_t depth = depth_.choose(num_decoding, num_prefill_tokens);
    EXPECT_GE(depth, 0);
    EXPECT_LE(depth, max_depth_);
    const auto num_positions = static_cast<size_t>(depth);
    std::vector<int32_t> num_drafted(static_cast<size_t>(max_depth_));
    std::vector<int32_t> num_accepted(static_cast<size_t>(max_depth_));
    std::fill_n(num_drafted.begin(), depth, num_decoding);
    for (int32_t sequence = 0; sequence < num_decoding; ++sequence) {
      for (size_t i = 0; i < num_positions && uniform() < machine.acceptance; ++i) {
        ++num_accepted[i];
      }
    }
    double seconds = machine.mean_seconds(depth, num_decoding, num_prefill_tokens);
    seconds *= 1 + machine.jitter * random_.normal(counter_++);
    if (uniform() < machine.spike_share) {
      seconds *= 1.1 + (machine.spike_max - 0.1) * uniform();
    }
    depth_.observe({.num_decoding = num_decoding,
                    .num_prefill_tokens = num_prefill_tokens,
                    .depth = depth,
                    .duration = base::Duration(static_cast<int64_t>(1e9 * seconds)),
                    .num_drafted = num_drafted,
                    .num_accepted = num_accepted});
    recent_.push_back(depth);
    return depth;
  }

  // Of more than half of the last hundred steps; -1 if there is none.
  int32_t usual_depth() const {
    const auto first = recent_.end() - std::min<ptrdiff_t>(100, std::ssize(recent_));
    for (int32_t depth = 0; depth <= max_depth_; ++depth) {
      if (2 * std::count(first, recent_.end(), depth) > recent_.end() - first) return depth;
    }
    return -1;
  }

  Machine machine;

 private:
  double uniform() { return random_.uniform(counter_++); }

  int32_t max_depth_;
  DraftDepth depth_;
  base::RandomStream random_;
  uint64_t counter_ = 0;
  std::vector<int32_t> recent_;
};

// How near the usual depth comes to the best one, of which there may be several.
double usual_goodput(const Simulation& simulation, int32_t max_depth, int32_t num_decoding) {
  const int32_t usual = simulation.usual_depth();
  if (usual < 0) return 0;
  const Machine& machine = simulation.machine;
  const int32_t best = machine.best_depth(max_depth, num_decoding, 0);
  return machine.goodput(usual, num_decoding, 0) / machine.goodput(best, num_decoding, 0);
}

TEST(DraftDepth, OffIsNone) {
  DraftDepth depth(SpeculationMode::kOff, 0);
  depth.observe({.num_decoding = 3, .duration = base::Duration(1000)});
  EXPECT_EQ(depth.choose(3, 0), 0);
}

TEST(DraftDepth, FixedIsFixed) {
  DraftDepth depth(SpeculationMode::kFixed, 3);
  for (const int32_t num_decoding : {1, 300}) {
    EXPECT_EQ(depth.choose(num_decoding, 1000), 3);
    const std::vector<int32_t> drafted(3, num_decoding);
    const std::vector<int32_t> accepted(3, 0);
    depth.observe({.num_decoding = num_decoding,
                   .depth = 3,
                   .duration = base::Duration(1000),
                   .num_drafted = drafted,
                   .num_accepted = accepted});
  }
}

TEST(DraftDepth, WithoutDraftsThereIsNoChoice) {
  Simulation simulation(0);
  EXPECT_EQ(simulation.run(1000, 4).num_steps_at, std::vector<int64_t>{1000});
}

TEST(DraftDepth, OneDraftOrNone) {
  Simulation simulation(1);
  simulation.run(500, 4);
  EXPECT_EQ(simulation.usual_depth(), 1);
  simulation.run(500, 1000);
  simulation.machine.acceptance = 0.2;
  simulation.run(500, 1000);
  EXPECT_EQ(simulation.usual_depth(), 0);
}

// Chosen with no step since: the same.
TEST(DraftDepth, ChoosingChangesNothing) {
  DraftDepth depth(SpeculationMode::kAuto, 3);
  EXPECT_EQ(depth.choose(4, 0), 0);
  EXPECT_EQ(depth.choose(4, 0), 0);
  EXPECT_EQ(depth.choose(0, 100), 0);
}

TEST(DraftDepth, SameStepsSameDepths) {
  Simulation one(5, 7);
  Simulation other(5, 7);
  for (int32_t i = 0; i < 3000; ++i) {
    const int32_t num_decoding = 1 + i % 40;
    ASSERT_EQ(one.step(num_decoding, i % 3 * 50), other.step(num_decoding, i % 3 * 50));
  }
}

class DraftDepthAtAcceptance : public testing::TestWithParam<double> {};

TEST_P(DraftDepthAtAcceptance, IsNearTheBestAfterThousandSteps) {
  for (const int32_t num_decoding : {1, 4, 16, 64, 256}) {
    Simulation simulation(5, 11);
    simulation.machine.acceptance = GetParam();
    const Outcome outcome = simulation.run(1000, num_decoding);
    EXPECT_LT(outcome.regret(), 0.06) << num_decoding;
    EXPECT_GT(usual_goodput(simulation, 5, num_decoding), 0.94) << num_decoding;
  }
}

// What is worth nothing is not done: no going back and forth between depths that are as good as
// each other, hardly a trial, hardly a loss.
TEST_P(DraftDepthAtAcceptance, IsAtRestInTheLongRun) {
  for (const int32_t num_decoding : {1, 16, 128}) {
    Simulation simulation(5, 12);
    simulation.machine.acceptance = GetParam();
    simulation.run(5000, num_decoding);
    Outcome sum;
    int64_t num_others = 0;
    int32_t num_switches = 0;
    int32_t last = simulation.usual_depth();
    for (int32_t i = 0; i < 200; ++i) {
      const Outcome outcome = simulation.run(500, num_decoding);
      ASSERT_GE(outcome.usual_depth, 0);
      if (outcome.usual_depth == last) {
        num_others += 500 - outcome.num_steps_at[static_cast<size_t>(last)];
      } else {
        ++num_switches;
      }
      last = outcome.usual_depth;
      sum.tokens += outcome.tokens;
      sum.best_tokens += outcome.best_tokens;
    }
    EXPECT_LE(num_switches, 2) << num_decoding;
    EXPECT_LT(num_others, 2000) << num_decoding;  // of 100,000
    EXPECT_LT(sum.regret(), 0.03) << num_decoding;
  }
}

INSTANTIATE_TEST_SUITE_P(, DraftDepthAtAcceptance, testing::Values(0.05, 0.3, 0.6, 0.8, 0.95),
                         [](const auto& test) {
                           return std::to_string(std::lround(100 * test.param)) + "Percent";
                         });

TEST(DraftDepth, RisesToAllWhereRowsAreNearlyFree) {
  Simulation simulation(7);
  simulation.machine.row_seconds = 1e-6;
  simulation.machine.draft_seconds = 0.0002;
  simulation.machine.acceptance = 0.85;
  simulation.run(300, 8);
  EXPECT_EQ(simulation.usual_depth(), 7);
}

TEST(DraftDepth, FallsToNoneWhereRowsAreDear) {
  Simulation simulation(7);
  simulation.machine.acceptance = 0.4;
  simulation.run(300, 400);
  EXPECT_EQ(simulation.usual_depth(), 0);
}

TEST(DraftDepth, FollowsTheBatch) {
  Simulation simulation(5);
  simulation.machine.acceptance = 0.6;
  simulation.machine.row_seconds = 0.001;
  for (int32_t round = 0; round < 3; ++round) {
    simulation.run(1000, 1);
    EXPECT_GT(usual_goodput(simulation, 5, 1), 0.95) << round;
    EXPECT_GE(simulation.usual_depth(), 2) << round;
    simulation.run(300, 64);
    EXPECT_EQ(simulation.usual_depth(), 0) << round;
  }
}

TEST(DraftDepth, KeepsADepthForEachKindOfStep) {
  Simulation simulation(5);
  simulation.machine.acceptance = 0.6;
  simulation.machine.row_seconds = 0.001;
  for (int32_t i = 0; i < 1000; ++i) {
    simulation.step(1, 0);
    simulation.step(64, 0);
  }
  int64_t num_alone = 0;
  int64_t num_together = 0;
  for (int32_t i = 0; i < 1000; ++i) {
    num_alone += simulation.step(1, 0);
    num_together += simulation.step(64, 0);
  }
  EXPECT_GT(num_alone, 2 * 1000);
  EXPECT_LT(num_together, 100);
}

TEST(DraftDepth, FollowsTheAcceptance) {
  for (const int32_t num_decoding : {1, 16}) {
    Simulation simulation(5);
    simulation.machine.acceptance = 0.9;
    simulation.run(2000, num_decoding);
    EXPECT_EQ(simulation.usual_depth(), 5);
    simulation.machine.acceptance = 0.1;
    simulation.run(num_decoding == 1 ? 4000 : 2000, num_decoding);
    EXPECT_LE(simulation.usual_depth(), 2);
    EXPECT_GT(usual_goodput(simulation, 5, num_decoding), 0.95) << num_decoding;
  }
}

// No drafts, no news of them: what is known must be forgotten.
TEST(DraftDepth, LeavesNoneAgain) {
  for (const int32_t num_decoding : {1, 64}) {
    Simulation simulation(3);
    simulation.machine.draft_seconds = 0.003;
    simulation.machine.acceptance = 0;
    simulation.run(20'000, num_decoding);
    EXPECT_EQ(simulation.usual_depth(), 0);
    simulation.machine.acceptance = 0.9;
    simulation.run(6000, num_decoding);
    EXPECT_GT(usual_goodput(simulation, 3, num_decoding), 0.95) << num_decoding;
  }
}

// A kernel that is missing at one depth: more drafts are accepted than ever, and all is 33 times
// slower. Seen where hipcc ran again for every step.
TEST(DraftDepth, LeavesADepthThatBecomes33TimesSlower) {
  for (const int32_t num_steps_before : {1000, 1007, 5000, 60'000}) {
    Simulation simulation(5);
    simulation.machine.acceptance = 0.9;
    simulation.run(num_steps_before, 4);
    ASSERT_EQ(simulation.usual_depth(), 5);
    simulation.machine.slow_depth = 4;
    int32_t num_slow_steps = 0;
    for (int32_t i = 0; i < 40; ++i) num_slow_steps += simulation.step(4, 0) >= 4 ? 1 : 0;
    EXPECT_LE(num_slow_steps, 16);
    EXPECT_GE(num_slow_steps, 5);  // fewer than that may be chance
    // Even a look at it now and then would cost more than all else.
    const Outcome after = simulation.run(20'000, 4);
    EXPECT_EQ(after.usual_depth, 3);
    EXPECT_LT(after.regret(), 0.03);
    simulation.machine.slow_depth = INT32_MAX;
    simulation.run(100'000, 4);
    EXPECT_EQ(simulation.usual_depth(), 5);
  }
}

TEST(DraftDepth, LeavesAllDepthsThatBecome33TimesSlower) {
  Simulation simulation(5);
  simulation.machine.acceptance = 0.9;
  simulation.run(3000, 4);
  ASSERT_EQ(simulation.usual_depth(), 5);
  simulation.machine.slow_depth = 1;
  int32_t num_slow_steps = 0;
  for (int32_t i = 0; i < 200; ++i) num_slow_steps += simulation.step(4, 0) >= 1 ? 1 : 0;
  EXPECT_LE(num_slow_steps, 40);
  EXPECT_EQ(simulation.usual_depth(), 0);
}

// Steps that are always full take equally long at all depths. What makes drafts cost is the
// prefill that they put off; here it even changes in how many digits the prefill has.
TEST(DraftDepth, CountsThePrefillThatDraftsDisplace) {
  for (const double acceptance : {0.05, 0.9}) {
    DraftDepth depth(SpeculationMode::kAuto, 3);
    int64_t num_drafts = 0;
    for (int32_t i = 0; i < 2000; ++i) {
      const int32_t chosen = depth.choose(128, 512);
      if (i >= 1000) num_drafts += chosen;
      const std::vector<int32_t> drafted(static_cast<size_t>(chosen), 128);
      std::vector<int32_t> accepted;
      for (int32_t position = 1; position <= chosen; ++position) {
        accepted.push_back(static_cast<int32_t>(std::lround(128 * std::pow(acceptance, position))));
      }
      depth.observe({.num_decoding = 128,
                     .num_prefill_tokens = 512 - 64 * chosen,
                     .depth = chosen,
                     .duration = base::Duration(50'000'000),
                     .num_drafted = drafted,
                     .num_accepted = accepted});
    }
    if (acceptance > 0.5) {
      EXPECT_GT(num_drafts, 2900);
    } else {
      EXPECT_LT(num_drafts, 100);
    }
  }
}

}  // namespace
}  // namespace ingot::scheduler
