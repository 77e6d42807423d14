#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "engine/engine.h"
#include "shadow/watched_executor.h"

namespace ingot::soak {

// How probable it is that a step fails whole, and each sequence in each step.
struct FailureRates {
  double step = 0;
  double sequence = 0;
};

// The error of what was planted to fail; no other is to be seen.
inline constexpr std::string_view kPlantedFailure = "planted by the soak";

// An engine with a ShadowCache beside its model, and failures that are drawn from a seed.
class WatchedEngine {
 public:
  // As of Engine::create; REQUIRES: `options` have none of what tests can watch with.
  static base::Result<std::unique_ptr<WatchedEngine>> create(
      const engine::LoadedModel& model, base::ThreadTeam& team, engine::EngineOptions options,
      const FailureRates& failures, uint64_t seed, const base::Clock& clock);

  engine::Engine& engine() { return *engine_; }

  // That the watch found nothing, nothing is held and all counts agree.
  // REQUIRES: the engine said that it is idle, and nothing was submitted since.
  base::Status check_idle() const;

 private:
  WatchedEngine() = default;

  shadow::WatchedExecutor* watched_ = nullptr;  // in the engine, and of its thread while it works
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace ingot::soak
