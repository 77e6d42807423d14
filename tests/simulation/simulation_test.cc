#include "simulation/simulation.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"
#include "simulation/dice.h"
#include "simulation/trial.h"
#include "simulation/workload.h"

namespace ingot::simulation {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int64_t kNumRequests = 500;
#else
constexpr int64_t kNumRequests = 10000;
#endif

TrialReport run_seed(uint64_t seed, int64_t num_requests) {
  const auto setup = draw_setup(seed);
  Workload workload(setup, num_requests);
  return run_trial(setup, [&] { return workload.next(); });
}

// ./test runs ten seeds, ./test --all as many as it says in the environment.
int num_seeds() {
  const char* text = std::getenv("INGOT_SIMULATION_SEEDS");
  if (text == nullptr) return 10;
  const std::string_view digits(text);
  int count = 0;
  const auto [end, failure] = std::from_chars(digits.begin(), digits.end(), count);
  CHECK(failure == std::errc() && end == digits.end() && count > 0,
        "INGOT_SIMULATION_SEEDS is not a number");
  return count;
}

class EverySeed : public testing::TestWithParam<int> {};

TEST_P(EverySeed, KeepsEveryRule) {
  const auto seed = static_cast<uint64_t>(GetParam());
  const TrialReport report = run_seed(seed, kNumRequests);
  ASSERT_TRUE(report.outcome) << report.text << "for a shorter history: ingot_simulate --seeds "
                              << seed << " --requests " << kNumRequests;
  EXPECT_EQ(report.outcome->stats.num_requests_finished + report.outcome->num_refused,
            kNumRequests);
}

INSTANTIATE_TEST_SUITE_P(Simulation, EverySeed, testing::Range(1, num_seeds() + 1));

uint64_t fingerprint_of(const TrialReport& report) {
  EXPECT_TRUE(report.outcome) << report.text;
  return report.outcome ? report.outcome->fingerprint : 0;
}

TEST(Simulation, GivesTheSameHistoryForTheSameSeed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    EXPECT_EQ(fingerprint_of(run_seed(seed, 300)), fingerprint_of(run_seed(seed, 300))) << seed;
  }
  EXPECT_NE(fingerprint_of(run_seed(1, 300)), fingerprint_of(run_seed(2, 300)));
}

// Blocks of memory that come and go at random, so that everything else lies elsewhere.
class Clutter {
 public:
  explicit Clutter(uint64_t seed) : dice_(base::random_stream(seed, "clutter")) {}

  void stir() {
    for (int i = 0; i < 20; ++i) {
      const auto index = static_cast<size_t>(dice_.between(0, kNumBlocks - 1));
      blocks_[index].assign(static_cast<size_t>(dice_.between(16, 1024)), 'x');
      blocks_[index].shrink_to_fit();
    }
  }

 private:
  static constexpr int32_t kNumBlocks = 500;
  std::array<std::string, kNumBlocks> blocks_;
  Dice dice_;
};

TEST(Simulation, DependsOnNoAddress) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const auto setup = draw_setup(seed);
    Workload workload(setup, 500);
    Clutter clutter(seed);
    const TrialReport report = run_trial(setup, [&] {
      clutter.stir();
      return workload.next();
    });
    EXPECT_EQ(fingerprint_of(report), fingerprint_of(run_seed(seed, 500))) << seed;
  }
}

// A rule that no seed comes near to is not tested.
TEST(Simulation, ComesToEverything) {
  scheduler::SchedulerStats sum;
  std::array<int64_t, 5> num_by_reason = {};
  int64_t num_refused = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const TrialReport report = run_seed(seed, 300);
    ASSERT_TRUE(report.outcome) << report.text;
    const scheduler::SchedulerStats& stats = report.outcome->stats;
    sum.num_preemptions += stats.num_preemptions;
    sum.num_hit_tokens += stats.num_hit_tokens;
    sum.num_recomputed_tokens += stats.num_recomputed_tokens;
    sum.num_reused_output_tokens += stats.num_reused_output_tokens;
    sum.num_read_only_tokens += stats.num_read_only_tokens;
    sum.num_accepted_tokens += stats.num_accepted_tokens;
    sum.num_rejected_tokens += stats.num_rejected_tokens;
    sum.num_evicted_tokens += stats.num_evicted_tokens;
    num_refused += report.outcome->num_refused;
    for (size_t i = 0; i < num_by_reason.size(); ++i) {
      num_by_reason[i] += report.outcome->num_by_reason[i];
    }
  }
  EXPECT_GT(sum.num_preemptions, 100);
  EXPECT_GT(sum.num_hit_tokens, 10000);
  EXPECT_GT(sum.num_recomputed_tokens, 1000);
  EXPECT_GT(sum.num_read_only_tokens, 100);
  EXPECT_GT(sum.num_accepted_tokens, 1000);
  EXPECT_GT(sum.num_rejected_tokens, 1000);
  EXPECT_GT(sum.num_evicted_tokens, 10000);
  EXPECT_GT(num_refused, 10);
  for (const int64_t count : num_by_reason) EXPECT_GT(count, 10);
}

}  // namespace
}  // namespace ingot::simulation
