#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/engine_request.h"
#include "engine/model_executor.h"
#include "engine/model_runner.h"
#include "engine/request_output.h"
#include "engine/token_mask.h"
#include "scheduler/executor.h"
#include "scheduler/scheduler.h"
#include "text/tokenizer.h"

namespace ingot::engine {

struct EngineOptions {
  RunnerCapacity capacity = {};
  // How many tokens to draft; other than kOff needs a model with its MTP layer.
  scheduler::SpeculationMode speculation = scheduler::SpeculationMode::kOff;
  int32_t max_draft_tokens = 0;  // of one sequence in one step
  bool prefix_cache = true;
  // As ExecutorOptions has it; checked by check_simulated_acceptance.
  std::vector<double> simulated_acceptance = {};
  // Ids that stand for a token; others are never drawn. Absent: all of the model's.
  std::optional<TokenMask> drawable = {};
  // Reads the output of requests with stop strings. Without it they are refused.
  // REQUIRES: it has a token for every drawable id.
  const text::Tokenizer* tokenizer = nullptr;
  // What runs the batches instead, given the model's executor: for tests that watch, or fail.
  std::function<std::unique_ptr<scheduler::Executor>(ModelExecutor& model)> wrap_executor = {};
  // For them too, on the engine's thread: what the scheduler is about to take, and what it told.
  std::function<void(const scheduler::Request&)> on_request = {};
  std::function<void(const scheduler::RequestEvent&)> on_event = {};
};

// What an engine of these options makes its scheduler with.
scheduler::SchedulerConfig scheduler_config(const EngineOptions& options, bool has_mtp);

// What was done so far. The times are of the engine's thread, and all of its work but for the
// publishing of these statistics.
struct EngineStats {
  scheduler::SchedulerStats scheduler = {};
  int64_t num_refused = 0;      // requests, by submit
  base::Duration scheduling{};  // mailbox, schedule and commit
  base::Duration executing{};   // the executor; the model's tells its parts:
  StepTimes step_times = {};
  base::Duration delivering{};  // updates, stop strings and sinks included
};

// Serves many requests at once with one model: the scheduler decides, the model's executor computes
// and draws, updates go out. One thread of its own does all of it, and sleeps while there is
// nothing to do. A request that fails, or whose step fails, ends alone with its error. Any thread
// may call what is public.
class Engine {
 public:
  // All must outlive it; the team is the engine's alone. Errors: not enough memory, sizes that
  // contradict each other.
  static base::Result<std::unique_ptr<Engine>> create(const LoadedModel& model,
                                                      base::ThreadTeam& team, EngineOptions options,
                                                      const base::Clock& clock);
  // Cancels what is left, tells so, and waits for the thread.
  ~Engine();

  // Its news go to `sink`, until the one with a report. Errors, after which the sink is never
  // called: a field out of range, ids that the model has not, no room for it ever, no new requests
  // wanted.
  base::Result<scheduler::RequestId> submit(EngineRequest request, UpdateSink sink);

  // Ends a request, if it has not ended. Its report comes after the step that is under way.
  void cancel(scheduler::RequestId id);

  // From now on `submit` refuses; what was submitted goes on.
  void refuse_new();
  // Until every request has its report. False: time was up before.
  bool wait_until_idle(base::Duration time_limit) const;

  // The most tokens, prompt and output together, that a request may have.
  int32_t max_request_tokens() const { return max_request_tokens_; }
  const model::ModelConfig& model_config() const { return runner_->config(); }
  EngineStats stats() const;
  // How often the thread looked for work: stands still while there is none.
  int64_t num_turns() const { return num_turns_; }

 private:
  struct Command {
    scheduler::RequestId id = 0;
    EngineRequest request = {};
    UpdateSink sink = {};  // empty: cancels
  };

  Engine(EngineOptions options, const base::Clock& clock);
  base::Status check(const EngineRequest& request) const;
  void serve();
  bool take_commands();
  void start(Command command);
  void step();
  void observe_batch(const scheduler::Batch& batch, const scheduler::StepResult& result);
  void deliver();
  void end_all();
  void publish();

  const EngineOptions options_;
  const base::Clock& clock_;
  std::unique_ptr<ModelRunner> runner_;
  std::unique_ptr<ModelExecutor> model_executor_;
  std::unique_ptr<scheduler::Executor> wrapped_executor_;
  std::unique_ptr<scheduler::Scheduler> scheduler_;
  int32_t max_request_tokens_ = 0;

  // Of the engine's thread alone.
  std::unordered_map<scheduler::RequestId, RequestOutput> outputs_;
  std::vector<scheduler::RequestId> touched_;  // by the step, some twice
  int64_t num_reported_ = 0;                   // since the last publish()
  EngineStats working_stats_;

  mutable std::mutex mutex_;  // of what follows
  std::condition_variable work_arrived_;
  mutable std::condition_variable became_idle_;
  std::vector<Command> mailbox_;
  int64_t num_unreported_ = 0;
  bool refuses_new_ = false;
  bool stopping_ = false;
  EngineStats stats_;

  mutable std::atomic<int64_t> num_refused_ = 0;
  std::atomic<scheduler::RequestId> last_id_ = 0;
  std::atomic<int64_t> num_turns_ = 0;
  std::thread thread_;  // the last member: it uses the others
};

}  // namespace ingot::engine
