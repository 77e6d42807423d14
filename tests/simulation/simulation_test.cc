#include "simulation/simulation.h"

#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

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
  return text == nullptr ? 10 : std::max(1, std::stoi(text));
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

TEST(Simulation, GivesTheSameHistoryForTheSameSeed) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    const TrialReport first = run_seed(seed, 300);
    const TrialReport second = run_seed(seed, 300);
    ASSERT_TRUE(first.outcome) << first.text;
    ASSERT_TRUE(second.outcome) << second.text;
    EXPECT_EQ(first.outcome->fingerprint, second.outcome->fingerprint);
  }
  EXPECT_NE(run_seed(1, 300).outcome->fingerprint, run_seed(2, 300).outcome->fingerprint);
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
