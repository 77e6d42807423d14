// ingot_simulate: the scheduler under simulated loads, one line a seed; of a failure the fewest
// requests that show it. Exit 0: every rule held; 1: one was broken; 2: usage.

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/progress.h"
#include "simulation/investigation.h"
#include "simulation/setup.h"
#include "simulation/trial.h"
#include "simulation/workload.h"

namespace ingot::simulation {
namespace {

struct Options {
  uint64_t first_seed = 0;
  uint64_t last_seed = 0;
  int64_t num_requests = 0;
  int jobs = 1;
  int shrink_tries = 0;

  uint64_t num_seeds() const { return last_seed - first_seed + 1; }
};

struct RunningTrial {
  Setup setup;
  std::unique_ptr<Workload> workload;
  std::unique_ptr<Trial> trial;
};

// "3" or "1..10".
std::optional<std::pair<uint64_t, uint64_t>> parse_seeds(std::string_view text) {
  const size_t dots = text.find("..");
  const std::string_view first = text.substr(0, dots);
  const std::string_view last = dots == std::string_view::npos ? first : text.substr(dots + 2);
  uint64_t begin = 0, end = 0;
  const auto reads = [](std::string_view digits, uint64_t& value) {
    const char* stop = digits.data() + digits.size();
    const auto [at, failure] = std::from_chars(digits.data(), stop, value);
    return failure == std::errc() && at == stop;
  };
  if (!reads(first, begin) || !reads(last, end) || end < begin) return std::nullopt;
  return std::pair(begin, end);
}

RunningTrial start(uint64_t seed, const Options& options) {
  RunningTrial running = {.setup = draw_setup(seed)};
  running.workload = std::make_unique<Workload>(running.setup, options.num_requests);
  const Simulation::Plans plans = [workload = running.workload.get()] { return workload->next(); };
  // A slow machine with sanitizers does a hundred requests a second.
  const auto limit = static_cast<int>(60 + options.num_requests / 100);
  running.trial = std::make_unique<Trial>(running.setup, plans, Telling::kNothing, limit);
  return running;
}

std::string summary(const Setup& setup, const Outcome& outcome) {
  const scheduler::SchedulerStats& stats = outcome.stats;
  return fmt::format(
      "seed {}: {} requests, {} refused, {} steps, {} rows, {} of {} prompt tokens cached, {} "
      "drafts accepted, {} preemptions; {:016x}; {}",
      setup.seed, stats.num_requests_finished + outcome.num_refused, outcome.num_refused,
      stats.num_steps,
      stats.num_prefill_tokens + stats.num_decode_tokens + stats.num_recomputed_tokens +
          stats.num_read_only_tokens + stats.num_rejected_tokens,
      stats.num_hit_tokens, stats.num_lookup_tokens, stats.num_accepted_tokens,
      stats.num_preemptions, outcome.fingerprint, describe(setup));
}

int run(const Options& options) {
  const base::SystemClock clock;
  base::Progress progress("simulating",
                          options.num_seeds() * static_cast<uint64_t>(options.num_requests),
                          base::Progress::Unit::kRequests, clock);
  std::deque<RunningTrial> trials;  // in the order of their seeds, in which lines are printed
  uint64_t next_seed = options.first_seed;
  uint64_t num_done = 0;
  int num_failed = 0;
  while (next_seed <= options.last_seed || !trials.empty()) {
    while (next_seed <= options.last_seed && static_cast<int>(trials.size()) < options.jobs) {
      trials.push_back(start(next_seed++, options));
    }
    uint64_t num_under_way = 0;
    for (const RunningTrial& other : trials) {
      num_under_way += static_cast<uint64_t>(other.trial->standing().num_finished);
    }
    progress.update(num_done + num_under_way);
    RunningTrial& running = trials.front();
    if (!running.trial->wait()) continue;
    const TrialReport report = running.trial->report();
    if (report.outcome) {
      fmt::print("{}\n", summary(running.setup, *report.outcome));
    } else {
      ++num_failed;
      fmt::print("{}",
                 investigate(running.setup, options.num_requests, report, options.shrink_tries));
    }
    std::fflush(stdout);
    num_done += static_cast<uint64_t>(options.num_requests);
    trials.pop_front();
  }
  if (num_failed > 0) fmt::print("{} of {} seeds failed\n", num_failed, options.num_seeds());
  return num_failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace ingot::simulation

int main(int argc, char** argv) {
  CLI::App app("The scheduler under simulated loads, with every rule checked after every step.");
  std::string seeds = "1..10";
  ingot::simulation::Options options = {.num_requests = 10000, .shrink_tries = 2000};
  app.add_option("--seeds", seeds, "One seed, or A..B")->capture_default_str();
  app.add_option("--requests", options.num_requests, "Requests of each seed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--jobs", options.jobs, "Seeds that run at once")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--shrink-tries", options.shrink_tries, "Runs to find a smaller failure with")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& failure) {
    return app.exit(failure) == 0 ? 0 : 2;
  }
  const auto range = ingot::simulation::parse_seeds(seeds);
  if (!range) {
    fmt::print(stderr, "--seeds is '{}'; give one number, or two as in 1..10\n", seeds);
    return 2;
  }
  options.first_seed = range->first;
  options.last_seed = range->second;
  return ingot::simulation::run(options);
}
