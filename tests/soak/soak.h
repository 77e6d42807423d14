#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/model_runner.h"
#include "scheduler/scheduler.h"
#include "simulation/dice.h"
#include "soak/client.h"
#include "soak/findings.h"
#include "soak/memory_trend.h"
#include "soak/plan_pool.h"
#include "soak/watched_engine.h"
#include "text/tokenizer.h"

namespace ingot::soak {

struct SoakOptions {
  std::filesystem::path model = {};
  std::string targets = {};  // the level of instruction set, as in INGOT_TARGETS; empty: the best
  base::Duration length = std::chrono::minutes(1);
  uint64_t num_offers_max = UINT64_MAX;  // ends it as well
  uint64_t seed = 1;
  int threads = 1;
  size_t num_plans = 200;
  int32_t kv_tokens = 0;
  scheduler::SpeculationMode speculation = scheduler::SpeculationMode::kOff;
  int32_t max_draft_tokens = 0;
  int64_t growth_bytes_max = 0;  // of resident memory, see MemoryTrend; 0: it is only told
};

// An engine under random load for some time: rounds of bursts, of steady and of thin traffic, and
// between them moments at which nothing runs and everything has to be as at the start.
class Soak {
 public:
  Soak(const SoakOptions& options, const base::Clock& clock);

  // A line on stdout every ten seconds, and what was done at the end. The error is the first thing
  // that was found wrong.
  base::Status run();

 private:
  base::Status prepare();
  base::Status make_plans();
  base::Result<std::vector<Answer>> answer_alone(
      const std::vector<engine::EngineRequest>& requests);
  engine::EngineOptions engine_options() const;

  void run_round(const Manner& manner, int32_t num_clients);
  Manner draw_manner(base::Instant ends_at);
  base::Status rest();
  base::Status check_that_it_sleeps();
  base::Status check_drain();
  void tell_progress(const std::stop_token& stop);
  void tell_summary() const;
  double seconds_since_start() const { return base::seconds(clock_.now() - began_); }

  const SoakOptions options_;
  const base::Clock& clock_;
  base::ThreadTeam team_;
  simulation::Dice dice_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::unique_ptr<engine::LoadedModel> model_;

  PlanPool plans_;
  Findings findings_;
  std::unique_ptr<WatchedEngine> watched_;
  std::unique_ptr<Load> load_;
  base::Instant began_ = {};
  int64_t num_rounds_ = 0;
  uint64_t resident_bytes_at_start_ = 0;
  MemoryTrend memory_;
};

}  // namespace ingot::soak
