#include "engine/model_executor.h"

#include <chrono>
#include <cmath>
#include <map>
#include <new>

#include <gtest/gtest.h>

#include "engine/test_model.h"
#include "scheduler/scheduler.h"

namespace ingot::engine {
namespace {

// Reads n * n milliseconds the n-th time, so that no two differences are the same.
class SquareClock final : public base::Clock {
 public:
  base::Instant now() const override {
    if (++num_readings == failing_reading) throw std::bad_alloc();
    return base::Instant(std::chrono::milliseconds(num_readings * num_readings));
  }

  mutable int num_readings = 0;
  int failing_reading = 0;
};

constexpr scheduler::SchedulerConfig kConfig = {.num_pages = 12,
                                                .num_slots = 2,
                                                .max_context = 48,
                                                .max_step_tokens = 16,
                                                .speculation = scheduler::SpeculationMode::kFixed,
                                                .max_draft_tokens = 2};

// A model with its MTP layer under the real scheduler.
struct Served {
  explicit Served(TestModel& model, ExecutorOptions options = {})
      : runner(model.runner({.step_tokens = kConfig.max_step_tokens,
                             .logit_rows = kConfig.max_step_tokens,
                             .context = kConfig.max_context,
                             .num_pages = kConfig.num_pages,
                             .num_slots = kConfig.num_slots})),
        executor(*runner, TokenMask(model.loaded->config().vocab_size), clock, std::move(options)),
        scheduler(scheduler::Scheduler::create(kConfig).value()) {}

  void add(scheduler::RequestId id, int32_t first) {
    scheduler::Request request{.id = id, .max_tokens = 12};
    for (int32_t i = 0; i < 20; ++i) request.prompt.push_back((first + i * 7) % 64);
    executor.add(id, request.prompt, {.sampling = {.temperature = 1, .seed = id}});
    EXPECT_TRUE(scheduler.add(std::move(request), {}));
  }

  bool step() {
    const scheduler::Batch& batch = scheduler.schedule({});
    if (batch.sequences.empty()) return false;
    scheduler.commit(executor.execute(batch), {});
    scheduler.check_invariants();
    for (const scheduler::RequestEvent& event : scheduler.take_events()) {
      std::vector<int32_t>& output = outputs[event.request];
      output.insert(output.end(), event.tokens.begin(), event.tokens.end());
      if (!event.report) continue;
      reports[event.request] = *event.report;
      executor.remove(event.request);
    }
    return true;
  }

  SquareClock clock;
  std::unique_ptr<ModelRunner> runner;
  ModelExecutor executor;
  scheduler::Scheduler scheduler;
  std::map<scheduler::RequestId, std::vector<int32_t>> outputs;
  std::map<scheduler::RequestId, scheduler::RequestReport> reports;
};

TEST(ModelExecutor, TellsWhatThePartsOfAStepTook) {
  TestModel model(1, model::MtpChoice::kLoad);
  Served served(model);
  served.add(1, 3);
  ASSERT_TRUE(served.step());
  EXPECT_EQ(served.clock.num_readings, 4);
  EXPECT_EQ(served.executor.times().drafting, std::chrono::milliseconds(4 - 1));
  EXPECT_EQ(served.executor.times().forward, std::chrono::milliseconds(9 - 4));
  EXPECT_EQ(served.executor.times().drawing, std::chrono::milliseconds(16 - 9));
}

// The readings of the clock are where a step can be made to fail: after its drafts, after its
// forward pass, after its draws; in the first step and when all decode.
TEST(ModelExecutor, AnExceptionFailsItsStepAndNothingElse) {
  TestModel model(1, model::MtpChoice::kLoad);
  std::vector<int32_t> expected;
  for (const int failing_reading : {0, 2, 3, 4 * 4 + 2, 4 * 4 + 3, 4 * 4 + 4}) {
    SCOPED_TRACE(testing::Message() << "reading " << failing_reading);
    Served served(model);
    served.clock.failing_reading = failing_reading;
    served.add(1, 3);
    served.add(2, 5);
    served.add(3, 3);  // waits for a slot, and for the prefix of the first
    while (served.step()) {
      if (failing_reading != 0 && served.clock.num_readings == failing_reading) {
        EXPECT_EQ(served.executor.times().forward, base::Duration::zero());
      }
    }
    ASSERT_EQ(served.reports.size(), 3u);
    if (failing_reading == 0) expected = served.outputs[3];
    EXPECT_EQ(served.outputs[3], expected);
    EXPECT_EQ(served.reports[3].error, "");
    int num_failed = 0;
    for (const scheduler::RequestId id : {1, 2}) {
      if (served.reports[id].error.empty()) continue;
      ++num_failed;
      EXPECT_EQ(served.reports[id].reason, scheduler::FinishReason::kError);
      EXPECT_TRUE(served.reports[id].error.contains("the step ran out of memory"))
          << served.reports[id].error;
    }
    EXPECT_EQ(num_failed, failing_reading == 0 ? 0 : failing_reading > 4 ? 2 : 1);
    const scheduler::SchedulerStats stats = served.scheduler.stats();
    EXPECT_EQ(stats.num_free_pages + stats.num_cached_pages, kConfig.num_pages);
  }
}

TEST(ModelExecutor, SimulatesAcceptanceUnderTheScheduler) {
  TestModel model(1, model::MtpChoice::kLoad);
  std::vector<std::map<scheduler::RequestId, std::vector<int32_t>>> outputs;
  for (const std::vector<double>& acceptance :
       {std::vector<double>{}, {1, 1}, {0, 1}, {1}, {0.5, 0.5}, {0.5, 0.5}}) {
    Served served(model, {.simulated_acceptance = acceptance});
    for (scheduler::RequestId id = 1; id < 5; ++id) served.add(id, static_cast<int32_t>(id));
    while (served.step()) continue;
    const scheduler::SchedulerStats stats = served.scheduler.stats();
    const std::span<const int64_t> drafted = stats.drafted_by_position;
    const std::span<const int64_t> accepted = stats.accepted_by_position;
    EXPECT_GT(drafted[0], 4);
    if (acceptance.size() == 1) {
      EXPECT_EQ(accepted[0], drafted[0]);
      EXPECT_EQ(accepted[1], 0) << "beyond the list nothing is accepted";
    } else if (acceptance == std::vector<double>{1, 1}) {
      EXPECT_EQ(accepted[0], drafted[0]);
      EXPECT_EQ(accepted[1], drafted[1]);
    } else if (acceptance == std::vector<double>{0, 1}) {
      EXPECT_EQ(accepted[0], 0);
      EXPECT_EQ(served.outputs, outputs[0]) << "what is drawn after a rejection is the model's";
    } else if (acceptance == std::vector<double>{0.5, 0.5}) {
      EXPECT_NE(served.outputs, outputs[0]);
    }
    for (const auto& [id, output] : served.outputs) EXPECT_EQ(output.size(), 12u);
    outputs.push_back(served.outputs);
  }
  EXPECT_EQ(outputs[4], outputs[5]) << "the same seeds";
}

TEST(ModelExecutor, SimulatesNothingOnRealWeights) {
  model::ModelConfig config;
  EXPECT_TRUE(check_simulated_acceptance({}, config));
  const base::Status real = check_simulated_acceptance(std::vector{0.5}, config);
  ASSERT_FALSE(real);
  EXPECT_TRUE(real.error().message.contains("`ingot synth` made; these are real"));
  config.synthetic_weights = true;
  EXPECT_TRUE(check_simulated_acceptance(std::vector{0.0, 0.5, 1.0}, config));
  for (const double wrong : {-0.1, 1.1, std::nan("")}) {
    EXPECT_FALSE(check_simulated_acceptance(std::vector{0.5, wrong}, config)) << wrong;
  }
}

}  // namespace
}  // namespace ingot::engine
