#include "soak/soak.h"

#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/machine.h"
#include "engine/engine.h"
#include "engine/model_text.h"
#include "engine/update_queue.h"
#include "kernels/target.h"

namespace ingot::soak {

using namespace std::chrono_literals;
using base::error;
using scheduler::FinishReason;

namespace {

// Nothing takes so long, on the slowest machine.
constexpr base::Duration kPatience = 300s;
constexpr base::Duration kTellEvery = 10s;
// Until then memory grows: caches fill, and every plan gets its answer.
constexpr double kWarmUpShare = 0.15;

// Somewhat more than what the model's index selects.
constexpr int32_t kContext = 768;

constexpr FailureRates kFailures = {.step = 0.001, .sequence = 0.0005};

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

}  // namespace

Soak::Soak(const SoakOptions& options, const base::Clock& clock)
    : options_(options),
      clock_(clock),
      team_(options.threads),
      dice_(base::random_stream(options.seed, "rounds")) {}

engine::EngineOptions Soak::engine_options() const {
  engine::EngineOptions options;
  const int32_t num_pages = options_.kv_tokens / scheduler::kPageTokens;
  options.capacity = {.step_tokens = 96,
                      .logit_rows = 64,
                      .context = std::min(kContext, num_pages * scheduler::kPageTokens),
                      .num_pages = num_pages,
                      .num_slots = 12};
  options.speculation = options_.speculation;
  options.max_draft_tokens = options_.max_draft_tokens;
  options.drawable = engine::drawable_ids(*tokenizer_, model_->config().vocab_size);
  options.tokenizer = tokenizer_.get();
  return options;
}

base::Status Soak::prepare() {
  tokenizer_ = std::make_unique<text::Tokenizer>(TRY(engine::load_tokenizer(options_.model)));
  engine::RunnerOptions options;
  options.target = TRY(kernels::usable_target(options_.targets));
  if (options_.speculation != scheduler::SpeculationMode::kOff) {
    options.mtp = model::MtpChoice::kLoad;
  }
  model_ = TRY(engine::LoadedModel::load(options_.model, options, team_, clock_));
  TRY(make_plans());
  watched_ = TRY(
      WatchedEngine::create(*model_, team_, engine_options(), kFailures, options_.seed, clock_));
  const PlanLimits limits = {.max_request_tokens = watched_->engine().max_request_tokens(),
                             .vocab_size = static_cast<int32_t>(model_->config().vocab_size)};
  load_.reset(new Load{.engine = watched_->engine(),
                       .clock = clock_,
                       .plans = plans_,
                       .limits = limits,
                       .seed = options_.seed,
                       .findings = findings_});
  return {};
}

// Half of the plans are answered alone beforehand, without cached prefixes and drafts; a quarter
// are next turns of these; the others are held against their own first answer.
base::Status Soak::make_plans() {
  const engine::EngineOptions options = engine_options();
  const PlanLimits limits = {.max_request_tokens = static_cast<int32_t>(options.capacity.context),
                             .vocab_size = static_cast<int32_t>(model_->config().vocab_size)};
  const auto draw = [&](size_t number) {
    return draw_request(options_.seed, number, *tokenizer_, limits);
  };
  std::vector<engine::EngineRequest> answered;
  for (size_t i = 0; i < (options_.num_plans + 1) / 2; ++i) answered.push_back(draw(i));
  std::vector<Answer> answers = TRY(answer_alone(answered));
  for (size_t i = answered.size(); i < options_.num_plans; ++i) {
    const size_t of = i - answered.size();
    plans_.add(i % 2 == 0 ? draw_next_turn(options_.seed, i, answered[of], answers[of], *tokenizer_,
                                           limits)
                          : draw(i));
  }
  for (size_t i = 0; i < answered.size(); ++i) plans_.add(answered[i], std::move(answers[i]));
  return {};
}

base::Result<std::vector<Answer>> Soak::answer_alone(
    const std::vector<engine::EngineRequest>& requests) {
  engine::EngineOptions options = engine_options();
  options.prefix_cache = false;
  options.speculation = scheduler::SpeculationMode::kOff;
  options.max_draft_tokens = 0;
  const auto alone = TRY(engine::Engine::create(*model_, team_, std::move(options), clock_));
  std::vector<Answer> answers(requests.size());
  const engine::UpdateQueue queue;
  for (size_t i = 0; i < requests.size(); ++i) {
    TRY(alone->submit(requests[i], queue.sink(i)));
    for (bool ended = false; !ended;) {
      auto entry = queue.wait_for(kPatience);
      if (!entry) return error("plan {} has no answer alone", i);
      ended = entry->update.report.has_value();
      append(answers[i], std::move(entry->update));
    }
    const std::string fault = fault_of(answers[i], requests[i]);
    if (!fault.empty() || !is_whole(answers[i])) {
      return error("plan {} alone: {}{}", i, fault, answers[i].report.error);
    }
  }
  return answers;
}

base::Status Soak::run() {
  TRY(prepare());
  began_ = clock_.now();
  resident_bytes_at_start_ = base::resident_memory_bytes();
  std::jthread teller([this](const std::stop_token& stop) { tell_progress(stop); });
  const base::Instant ends_at = began_ + options_.length;
  while (!findings_.any() && clock_.now() < ends_at &&
         load_->next_offer < options_.num_offers_max) {
    ++num_rounds_;
    const Manner manner = draw_manner(ends_at);
    run_round(manner, dice_.between(1, 12));
    if (!findings_.any()) findings_.add(rest());
  }
  teller.request_stop();
  teller.join();
  if (!findings_.any()) findings_.add(check_drain());
  tell_summary();
  const int64_t growth = memory_.growth_bytes();
  if (options_.growth_bytes_max > 0 && growth > options_.growth_bytes_max) {
    findings_.add(fmt::format("resident memory grew by {:.1f} MB where {:.1f} MB are allowed",
                              static_cast<double>(growth) / 1e6,
                              static_cast<double>(options_.growth_bytes_max) / 1e6));
  }
  if (findings_.any()) return error("{}", findings_.text());
  return {};
}

// Bursts, steady traffic that nearly keeps up, and single requests.
Manner Soak::draw_manner(base::Instant ends_at) {
  Manner manner{.ends_at = ends_at};
  int32_t num_offers = 0;
  const double kind = dice_.uniform();
  if (kind < 0.4) {
    num_offers = dice_.between(40, 300);
    manner.window = 8;
  } else if (kind < 0.8) {
    num_offers = dice_.between(40, 200);
    manner.gap_max = std::chrono::milliseconds(dice_.between(20, 400));
    manner.window = 4;
  } else {
    num_offers = dice_.between(1, 20);
    manner.gap_max = 200ms;
  }
  manner.end_offer =
      std::min(options_.num_offers_max, load_->next_offer + static_cast<uint64_t>(num_offers));
  return manner;
}

void Soak::run_round(const Manner& manner, int32_t num_clients) {
  std::deque<Client> clients;
  {
    std::vector<std::jthread> threads;
    for (int32_t i = 0; i < num_clients; ++i) {
      Client& client = clients.emplace_back(*load_, manner);
      threads.emplace_back([&client] { client.run(); });
    }
  }
  if (findings_.any()) return;
  if (!watched_->engine().wait_until_idle(kPatience)) {
    return findings_.add("all requests have their reports, and the engine is not idle");
  }
  for (Client& client : clients) client.check_silence();
}

// Nothing runs: what was taken was given back, and nothing happens.
base::Status Soak::rest() {
  TRY(watched_->check_idle());
  const int64_t num_refused = watched_->engine().stats().num_refused;
  if (num_refused != load_->num_refused) {
    return error("{} offers were refused, by the stats {}", load_->num_refused.load(), num_refused);
  }
  TRY(check_that_it_sleeps());
  const double share_done = std::max(
      seconds_since_start() / base::seconds(options_.length),
      static_cast<double>(load_->next_offer) / static_cast<double>(options_.num_offers_max));
  if (share_done > kWarmUpShare) memory_.add(base::resident_memory_bytes());
  if (dice_.chance(0.3))
    std::this_thread::sleep_for(std::chrono::milliseconds(dice_.between(0, 500)));
  return {};
}

// A cancel that came too late may wake the engine once more.
base::Status Soak::check_that_it_sleeps() {
  const base::Instant began = clock_.now();
  int64_t num_turns = watched_->engine().num_turns();
  while (clock_.now() - began < kPatience) {
    std::this_thread::sleep_for(20ms);
    const int64_t num_turns_now = watched_->engine().num_turns();
    if (num_turns_now == num_turns) return {};
    num_turns = num_turns_now;
  }
  return error("the engine is idle and looks for work all the time");
}

// The engine ends while requests wait and run: each is told so.
base::Status Soak::check_drain() {
  const engine::UpdateQueue queue;
  const uint64_t count = 30;
  for (uint64_t i = 0; i < count; ++i) {
    TRY(watched_->engine().submit(plans_.request(i % plans_.size()), queue.sink(i)));
  }
  watched_.reset();
  uint64_t num_reports = 0;
  while (const auto entry = queue.wait_for(0s)) {
    if (!entry->update.report) continue;
    ++num_reports;
    const engine::EngineReport& report = *entry->update.report;
    if (report.reason == FinishReason::kError && report.error != kPlantedFailure) {
      return error("at the end: {}", report.error);
    }
  }
  if (num_reports == count) return {};
  return error("{} of {} requests were told of the engine's end", num_reports, count);
}

void Soak::tell_progress(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  int64_t num_tokens_before = 0;
  double seconds_before = 0;
  while (!stopped.wait_for(lock, stop, kTellEvery, [&] { return stop.stop_requested(); })) {
    const int64_t num_tokens = load_->num_tokens;
    const double now = seconds_since_start();
    const scheduler::SchedulerStats stats = watched_->engine().stats().scheduler;
    fmt::print(
        "{:.0f} s: {} requests, {:.0f} tokens/s, {:.1f} MB resident, {} running, {} waiting, "
        "{} preemptions\n",
        now, load_->num_answered.load(),
        static_cast<double>(num_tokens - num_tokens_before) / (now - seconds_before),
        megabytes(base::resident_memory_bytes()), stats.num_running, stats.num_waiting,
        stats.num_preemptions);
    std::fflush(stdout);
    num_tokens_before = num_tokens;
    seconds_before = now;
  }
}

void Soak::tell_summary() const {
  const auto by_reason = [&](FinishReason reason) {
    return load_->num_by_reason[static_cast<size_t>(reason)].load();
  };
  fmt::print("{:.0f} s, {} rounds: {} requests answered, {} refused, {} tokens\n",
             seconds_since_start(), num_rounds_, load_->num_answered.load(),
             load_->num_refused.load(), load_->num_tokens.load());
  fmt::print("ended: {} stop, {} length, {} cancelled, {} deadline, {} failed as planned\n",
             by_reason(FinishReason::kStop), by_reason(FinishReason::kLength),
             by_reason(FinishReason::kCancelled), by_reason(FinishReason::kDeadline),
             by_reason(FinishReason::kError));
  fmt::print("{} of {} plans were answered more than once\n", plans_.num_confirmed(),
             plans_.size());
  fmt::print(
      "resident memory: {:.1f} MB at the start, {:.1f} MB at last, {:+.1f} MB by its trend\n",
      megabytes(resident_bytes_at_start_), megabytes(memory_.last_bytes()),
      static_cast<double>(memory_.growth_bytes()) / 1e6);
}

}  // namespace ingot::soak
