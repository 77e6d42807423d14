#include "soak/watched_engine.h"

#include <string>
#include <utility>

#include "base/check.h"
#include "simulation/dice.h"

namespace ingot::soak {
namespace {

// Runs batches, and says of some that they failed.
class PlantedFailures final : public scheduler::Executor {
 public:
  PlantedFailures(scheduler::Executor& executor, const FailureRates& rates, uint64_t seed)
      : executor_(executor), rates_(rates), dice_(base::random_stream(seed, "failures")) {}

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override {
    const scheduler::StepResult& result = executor_.execute(batch);
    const bool all_fail = dice_.chance(rates_.step);
    result_.sequences.clear();
    for (const scheduler::StepResult::Sequence& sequence : result.sequences) {
      result_.sequences.push_back(sequence);
      if (!all_fail && !dice_.chance(rates_.sequence)) continue;
      result_.sequences.back() = {.error = std::string(kPlantedFailure)};
    }
    return result_;
  }

 private:
  scheduler::Executor& executor_;
  const FailureRates rates_;
  simulation::Dice dice_;
  scheduler::StepResult result_;
};

// The watch sees the failures as it would see the model's own.
class FailingAndWatched final : public scheduler::Executor {
 public:
  FailingAndWatched(const scheduler::SchedulerConfig& config, engine::ModelExecutor& model,
                    const FailureRates& rates, uint64_t seed)
      : failures_(model, rates, seed),
        watched_(config, failures_, [&model](size_t index) { return model.drafts(index); }) {}

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override {
    return watched_.execute(batch);
  }
  shadow::WatchedExecutor& watched() { return watched_; }

 private:
  PlantedFailures failures_;
  shadow::WatchedExecutor watched_;
};

}  // namespace

base::Result<std::unique_ptr<WatchedEngine>> WatchedEngine::create(
    const engine::LoadedModel& model, base::ThreadTeam& team, engine::EngineOptions options,
    const FailureRates& failures, uint64_t seed, const base::Clock& clock) {
  CHECK(!options.wrap_executor && !options.on_request && !options.on_event);
  std::unique_ptr<WatchedEngine> watched(new WatchedEngine());
  WatchedEngine* raw = watched.get();
  const scheduler::SchedulerConfig config =
      engine::scheduler_config(options, model.transformer().has_mtp());
  options.wrap_executor = [raw, config, failures, seed](engine::ModelExecutor& executor) {
    auto wrapped = std::make_unique<FailingAndWatched>(config, executor, failures, seed);
    raw->watched_ = &wrapped->watched();
    return wrapped;
  };
  options.on_request = [raw](const scheduler::Request& request) { raw->watched_->add(request); };
  options.on_event = [raw](const scheduler::RequestEvent& event) {
    if (event.report) raw->watched_->remove(event.request, *event.report);
  };
  watched->engine_ = TRY(engine::Engine::create(model, team, std::move(options), clock));
  return watched;
}

base::Status WatchedEngine::check_idle() const {
  return watched_->check_idle(engine_->stats().scheduler);
}

}  // namespace ingot::soak
