// The scheduler's own time for a step of a busy server: 256 requests run at 20,000 tokens and more,
// 10,000 wait, and for each that ends another comes. Of a prompt's 20,000 tokens all share 12,000.
//
// Each iteration is one step: `schedule`, `commit` and `take_events`. Between them an executor
// stands in that computes nothing, whose time does not count. Time is that of the processor, so a
// machine that is busy otherwise does not matter much. Counters are in microseconds; the label says
// what the slowest steps did.

#include <time.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "base/check.h"
#include "base/random.h"
#include "scheduler/scheduler.h"

namespace ingot::scheduler {
namespace {

constexpr int32_t kNumRunning = 256;
constexpr int32_t kNumWaiting = 10'000;
constexpr int32_t kPromptTokens = 20'000;
constexpr int32_t kSharedTokens = 12'000;
constexpr double kVocabularySize = 150'000;
constexpr int32_t kWarmUpSteps = 4000;
constexpr int32_t kMeasuredSteps = 10'000;
constexpr size_t kNumSlowestSteps = 5;

void append_random_tokens(uint64_t seed, int32_t count, std::vector<int32_t>& tokens) {
  const base::RandomStream random = base::random_stream(seed, "prompt");
  for (int32_t i = 0; i < count; ++i) {
    const double uniform = random.uniform(static_cast<uint64_t>(i));
    tokens.push_back(static_cast<int32_t>(uniform * kVocabularySize));
  }
}

double processor_microseconds() {
  timespec time{};
  CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) == 0);
  return 1e6 * static_cast<double>(time.tv_sec) + 1e-3 * static_cast<double>(time.tv_nsec);
}

struct StepCost {
  double schedule = 0;  // microseconds
  double commit = 0;    // with take_events
  int32_t num_prefill_rows = 0;
  int32_t num_admitted = 0;
  int32_t num_finished = 0;
  int64_t num_evicted_tokens = 0;

  double sum() const { return schedule + commit; }
};

class BusyServer {
 public:
  // Drafts are accepted 0, 1, ... and all of them in turn; outputs are as many times longer, so
  // that requests come and go at the same rate.
  explicit BusyServer(int32_t num_drafts)
      : num_drafts_(num_drafts), scheduler_(*Scheduler::create(config(num_drafts))) {
    append_random_tokens(0, kSharedTokens, shared_);
    for (int32_t i = 0; i < kNumRunning + kNumWaiting; ++i) add_request();
  }

  StepCost step() {
    StepCost cost;
    const int64_t num_evicted_before = scheduler_.stats().num_evicted_tokens;
    double begin = processor_microseconds();
    const Batch& batch = scheduler_.schedule(now_);
    cost.schedule = processor_microseconds() - begin;

    execute(batch, cost);
    now_ += std::chrono::milliseconds(30);
    begin = processor_microseconds();
    scheduler_.commit(result_, now_);
    const std::vector<RequestEvent> events = scheduler_.take_events();
    cost.commit = processor_microseconds() - begin;

    cost.num_evicted_tokens = scheduler_.stats().num_evicted_tokens - num_evicted_before;
    for (const RequestEvent& event : events) cost.num_finished += event.report ? 1 : 0;
    for (int32_t i = 0; i < cost.num_finished; ++i) add_request();
    return cost;
  }

  SchedulerStats stats() const { return scheduler_.stats(); }

 private:
  static SchedulerConfig config(int32_t num_drafts) {
    return {.num_pages = 200'000,
            .num_slots = kNumRunning,
            .max_context = 40'000,
            .max_step_tokens = 4096 + num_drafts * kNumRunning,
            .speculation = num_drafts == 0 ? SpeculationMode::kOff : SpeculationMode::kFixed,
            .max_draft_tokens = num_drafts};
  }

  void add_request() {
    const double uniform = lengths_.uniform(num_added_);
    Request request{
        .id = ++num_added_,
        .max_tokens = static_cast<int32_t>((500 + 1000 * uniform) * (1 + 0.5 * num_drafts_))};
    request.prompt.reserve(kPromptTokens + static_cast<size_t>(request.max_tokens));
    request.prompt = shared_;
    append_random_tokens(num_added_, kPromptTokens - kSharedTokens, request.prompt);
    CHECK(scheduler_.add(std::move(request), now_).has_value());
  }

  void execute(const Batch& batch, StepCost& cost) {
    result_.sequences.resize(batch.sequences.size());
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      const Batch::Sequence& entry = batch.sequences[i];
      // A decoding sequence has one token; a prompt's last chunk may, and is miscounted then.
      if (entry.tokens.size() > 1) {
        cost.num_prefill_rows += static_cast<int32_t>(entry.tokens.size());
        // The first chunk brings the pages of the prefix that was found.
        if (entry.new_pages.size() > kSharedTokens / kPageTokens) ++cost.num_admitted;
      }
      size_t num_tokens = 0;
      if (entry.draws) num_tokens = 1 + ++num_draws_ % static_cast<size_t>(1 + num_drafts_);
      num_tokens = std::min(num_tokens, static_cast<size_t>(1 + entry.num_draft_tokens));
      result_.sequences[i].tokens.assign(entry.draws ? num_tokens : 0, 7);
    }
  }

  int32_t num_drafts_;
  Scheduler scheduler_;
  std::vector<int32_t> shared_;
  base::RandomStream lengths_ = base::random_stream(1, "lengths");
  uint64_t num_added_ = 0;
  size_t num_draws_ = 0;
  StepResult result_;
  base::Instant now_{};
};

std::string what_the_slowest_did(const std::vector<StepCost>& sorted) {
  std::string text = "slowest:";
  for (size_t i = 0; i < kNumSlowestSteps; ++i) {
    const StepCost& cost = sorted[sorted.size() - 1 - i];
    text += fmt::format(
        " [{:.0f} us = schedule {:.0f} + commit {:.0f}; {} prefill rows, {} admitted, {} finished, "
        "{} evicted tokens]",
        cost.sum(), cost.schedule, cost.commit, cost.num_prefill_rows, cost.num_admitted,
        cost.num_finished, cost.num_evicted_tokens);
  }
  return text;
}

void step_of_a_busy_server(benchmark::State& state) {
  BusyServer server(static_cast<int32_t>(state.range(0)));
  for (int32_t i = 0; i < kWarmUpSteps; ++i) server.step();
  CHECK(server.stats().num_waiting >= kNumWaiting - kNumRunning);
  std::vector<StepCost> costs;
  double num_running = 0;
  double num_finished = 0;
  double schedule_sum = 0;
  for (auto _ : state) {
    const StepCost cost = server.step();
    state.SetIterationTime(1e-6 * cost.sum());
    num_running += server.stats().num_running;
    num_finished += cost.num_finished;
    schedule_sum += cost.schedule;
    costs.push_back(cost);
  }
  std::ranges::sort(costs, {}, &StepCost::sum);
  const auto percentile = [&](double share) {
    return costs[static_cast<size_t>(share * static_cast<double>(costs.size() - 1))].sum();
  };
  const auto num_steps = static_cast<double>(costs.size());
  state.counters["p50"] = percentile(0.5);
  state.counters["p99"] = percentile(0.99);
  state.counters["max"] = percentile(1);
  state.counters["schedule"] = schedule_sum / num_steps;
  state.counters["running"] = num_running / num_steps;
  state.counters["finished"] = num_finished / num_steps;
  state.SetLabel(what_the_slowest_did(costs));
}
BENCHMARK(step_of_a_busy_server)
    ->ArgName("drafts")
    ->Arg(0)
    ->Arg(3)
    ->Iterations(kMeasuredSteps)
    ->UseManualTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ingot::scheduler
