#include "engine/timed_steps.h"

#include <chrono>

#include <gtest/gtest.h>

#include "engine/test_model.h"

namespace ingot::engine {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kMemory = uint64_t{64} << 20;

StepBenchmarkOptions quick() {
  return {.prefill_tokens = {10},
          .decode_tokens = 3,
          .max_step_tokens = 4,
          .repetitions = 2,
          .probe_slice = 1ms,
          .probe_rounds_min = 4};
}

StepBenchmarkReport run(TestModel& model, const StepBenchmarkOptions& options) {
  const auto runner = model.runner(benchmark_capacity(options));
  return run_step_benchmark(*model.loaded, *runner, options, model.clock, kMemory).value();
}

TEST(TimedSteps, TimesEveryTestAsOftenAsAsked) {
  TestModel model(2);
  StepBenchmarkOptions options = quick();
  options.prefill_tokens = {10, 4};
  options.depths = {0, 9};
  options.batches = {1, 2};
  const StepBenchmarkReport report = run(model, options);
  ASSERT_EQ(report.tests.size(), 2u + 2 * 2);
  EXPECT_EQ(report.tests[0].kind, TestKind::kPrefill);
  EXPECT_EQ(report.tests[0].steps.size(), 3u) << "ten tokens in steps of four";
  EXPECT_EQ(report.tests[1].steps.size(), 1u);
  EXPECT_EQ(report.tests[5].kind, TestKind::kDecode);
  EXPECT_EQ(report.tests[5].depth, 9);
  EXPECT_EQ(report.tests[5].batch, 2);
  EXPECT_EQ(report.tests[5].total_tokens(), 6);
  for (const TestResult& test : report.tests) {
    EXPECT_EQ(test.seconds.values().size(), 2u);
    EXPECT_GT(test.seconds.quantile(0), 0);
  }
  EXPECT_GT(report.processor_share, 0);
  EXPECT_TRUE(report.speculation.empty());
}

TEST(TimedSteps, CostsAreThoseOfTheRowsAndOfTheExpertsThatTheyChose) {
  TestModel model(2);
  StepBenchmarkOptions options = quick();
  options.depths = {5};
  options.batches = {2};
  const StepBenchmarkReport report = run(model, options);
  const model::StepCostModel costs(model.loaded->config(), model.loaded->weights(),
                                   model::ActivationChoice::kAuto, model.loaded->cache_type());
  const TestResult& prefill = report.tests[0];
  EXPECT_EQ(prefill.steps[2].macs,
            costs.main({.sequences = {{.first_position = 8, .count = 2}}, .logit_rows = 1}).macs);
  const TestResult& decode = report.tests[1];
  const model::StepCost second =
      costs.main({.sequences = {{.first_position = 6}, {.first_position = 6}}, .logit_rows = 2});
  EXPECT_EQ(decode.steps[1].macs, second.macs);
  EXPECT_EQ(decode.steps[1].cache_bytes, second.cache_bytes);
  // Two layers with experts; a row takes four in each, two rows between four and eight.
  EXPECT_EQ(costs.num_moe_layers(), 2);
  EXPECT_GE(decode.experts_read, 2 * 4);
  EXPECT_LE(decode.experts_read, 2 * 8);
  EXPECT_DOUBLE_EQ(
      decode.cost().weight_bytes,
      decode.steps[0].weight_bytes + decode.steps[1].weight_bytes + decode.steps[2].weight_bytes);
}

TEST(TimedSteps, ProbesAlternateWithRepetitions) {
  TestModel model(2);
  StepBenchmarkOptions options = quick();
  options.probe_rounds_min = 10;
  const StepBenchmarkReport report = run(model, options);
  // Four repetitions, of which each has three rounds before it; the first with one thread too.
  ASSERT_EQ(report.probes.size(), 6u) << "read, f32 and int8, on one thread and on two";
  for (const ProbeReading& reading : report.probes) {
    EXPECT_EQ(reading.per_second.values().size(), reading.threads == 1 ? 4u : 12u) << reading.probe;
  }
  EXPECT_EQ(report.rates.read_bytes_per_second, report.probes[3].per_second.median());
  EXPECT_EQ(report.rates.f32_macs_per_second, report.probes[4].per_second.median());
  EXPECT_EQ(report.rates.bf16_macs_per_second, report.rates.f32_macs_per_second)
      << "nothing below AVX-512 multiplies bf16";
}

TEST(TimedSteps, OnOneThreadProbesAreNotDoubled) {
  TestModel model(1);
  const StepBenchmarkReport report = run(model, quick());
  EXPECT_EQ(report.probes.size(), 3u);
}

TEST(TimedSteps, SpeculationIsTimedAtEveryDepthOfDrafts) {
  TestModel model(2, model::MtpChoice::kLoad);
  StepBenchmarkOptions options = quick();
  options.depths = {0, 9};
  options.batches = {2};
  options.draft_tokens_max = 2;
  const StepBenchmarkReport report = run(model, options);
  ASSERT_EQ(report.speculation.size(), 4u);
  EXPECT_EQ(report.speculation[0].depth, 1) << "a chain needs a state to start from";
  EXPECT_EQ(report.speculation[3].depth, 9);
  EXPECT_EQ(report.speculation[3].draft_tokens, 2);
  for (const SpeculationResult& result : report.speculation) {
    EXPECT_EQ(result.plain.values().size(), 3u);
    EXPECT_EQ(result.draft.values().size(), 3u);
    EXPECT_EQ(result.verify.values().size(), 3u);
    EXPECT_GT(result.draft_cost.bytes(), 0);
  }
  const model::StepCostModel costs(model.loaded->config(), model.loaded->weights(),
                                   model::ActivationChoice::kAuto, model.loaded->cache_type());
  const std::vector<model::SequenceRows> at_ten(2, {.first_position = 10, .count = 3});
  const std::vector<model::SequenceRows> behind(2, {.first_position = 9, .count = 3});
  model::StepCost verify = costs.main({.sequences = at_ten, .logit_rows = 6});
  verify += costs.mtp({.sequences = behind});
  EXPECT_EQ(report.speculation[3].verify_cost.macs, verify.macs);
}

TEST(TimedSteps, TooLittleMemoryForProbesIsAnError) {
  TestModel model(2);
  const StepBenchmarkOptions options = quick();
  const auto runner = model.runner(benchmark_capacity(options));
  EXPECT_FALSE(run_step_benchmark(*model.loaded, *runner, options, model.clock, 1 << 20));
}

}  // namespace
}  // namespace ingot::engine
