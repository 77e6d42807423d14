// What a barrier of a thread team costs, and entering the team: by its size, on a quiet machine and
// beside threads that compute all the time. "work" is what each member does before each barrier,
// as operations of a step do; its own time is part of the figure. On a machine with fewer
// processors than members, the figure is that of a crowded team, which nobody should run.

#include <atomic>
#include <cstdint>
#include <ctime>
#include <thread>
#include <vector>

#include <benchmark/benchmark.h>

#include "base/thread_team.h"

namespace ingot::base {
namespace {

// Threads that leave no processor idle, as other programs on the same machine do.
class Load {
 public:
  explicit Load(int64_t num_threads) {
    for (int64_t i = 0; i < num_threads; ++i) {
      threads_.emplace_back([this] {
        while (!stopping_.load(std::memory_order_relaxed)) compute(1000);
      });
    }
  }
  ~Load() { stopping_ = true; }

  static void compute(int64_t turns) {
    for (int64_t i = 0; i < turns; ++i) benchmark::DoNotOptimize(i);
  }

 private:
  std::atomic<bool> stopping_{false};
  std::vector<std::jthread> threads_;
};

double processor_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Barriers inside one run(), as in a step; the time of one iteration is that of one barrier.
void barrier(benchmark::State& state) {
  const Load load(state.range(1));
  ThreadTeam team(static_cast<int>(state.range(0)));
  const ThreadTeam::Seat seat(team);
  const int64_t turns = state.range(2);
  constexpr int64_t kBarriers = 500;
  const double before = processor_seconds();
  while (state.KeepRunningBatch(kBarriers)) {
    team.run([&](int member) {
      for (int64_t i = 0; i < kBarriers; ++i) {
        Load::compute(turns);
        team.barrier(member);
      }
    });
  }
  if (state.range(1) == 0) {
    state.counters["cpu_seconds"] =
        benchmark::Counter(processor_seconds() - before, benchmark::Counter::kAvgIterations);
  }
  state.SetLabel(team.placement_line());
}

// A run() of nothing: entering and leaving the team, with a seat and without.
void enter(benchmark::State& state) {
  ThreadTeam team(static_cast<int>(state.range(0)));
  if (state.range(1) == 0) {
    for (auto _ : state) team.run([](int) {});
    return;
  }
  const ThreadTeam::Seat seat(team);
  for (auto _ : state) team.run([](int) {});
}

void sizes_and_loads(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgNames({"members", "load", "work"})->UseRealTime()->Unit(benchmark::kMicrosecond);
  for (const int64_t load : {0, 1, 2, 4}) {
    for (const int64_t turns : {0, 10'000}) {
      for (const int64_t members : {1, 2, 3, 8, 16, 32}) {
        if (load == 0 || members <= 2) benchmark->Args({members, load, turns});
      }
    }
  }
}

BENCHMARK(barrier)->Apply(sizes_and_loads)->MinTime(0.2);
BENCHMARK(enter)
    ->ArgNames({"members", "seat"})
    ->ArgsProduct({{1, 2, 8}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace ingot::base
