#include "simulation/trial.h"

#include <csignal>

#include <gtest/gtest.h>

#include "simulation/workload.h"

namespace ingot::simulation {
namespace {

Simulation::Plans five_plans(const Setup& setup) {
  return [workload = Workload(setup, 5)]() mutable { return workload.next(); };
}

TEST(Trial, ReportsWhatASimulationDid) {
  const auto setup = draw_setup(3);
  const TrialReport report = run_trial(setup, five_plans(setup), Telling::kHistory);
  ASSERT_TRUE(report.outcome) << report.text;
  EXPECT_EQ(report.standing.num_offered, 5);
  EXPECT_EQ(report.outcome->stats.num_requests_added + report.outcome->num_refused, 5);
  EXPECT_TRUE(report.text.contains("a batch of")) << report.text;
  EXPECT_TRUE(report.text.contains("add 5")) << report.text;
}

TEST(Trial, IsSilentUnlessAsked) {
  const auto setup = draw_setup(3);
  EXPECT_EQ(run_trial(setup, five_plans(setup)).text, "");
}

TEST(Trial, SurvivesTheEndOfItsProcess) {
  const auto setup = draw_setup(3);
  const TrialReport report = run_trial(setup, [] {
    std::raise(SIGABRT);
    return std::optional<RequestPlan>();
  });
  EXPECT_FALSE(report.outcome);
  EXPECT_TRUE(report.text.contains("it was stopped in step 1")) << report.text;
}

TEST(Trial, EndsOneThatHangs) {
  const auto setup = draw_setup(3);
  const auto hang = []() -> std::optional<RequestPlan> {
    for (volatile bool forever = true; forever;) continue;
    return std::nullopt;
  };
  Trial trial(setup, hang, Telling::kNothing, 1);
  while (!trial.wait()) continue;
  EXPECT_FALSE(trial.report().outcome);
  EXPECT_TRUE(trial.report().text.contains("it did not come back")) << trial.report().text;
}

}  // namespace
}  // namespace ingot::simulation
