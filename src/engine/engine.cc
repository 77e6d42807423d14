#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "base/check.h"

namespace ingot::engine {
namespace {

using scheduler::RequestId;
using scheduler::SpeculationMode;

base::Status check_ids(std::string_view what, std::span<const int32_t> ids, int64_t vocab_size) {
  for (const int32_t id : ids) {
    if (0 <= id && id < vocab_size) continue;
    return base::error("{} names token {}; ids are from 0 to {}", what, id, vocab_size - 1);
  }
  return {};
}

}  // namespace

scheduler::SchedulerConfig scheduler_config(const EngineOptions& options, bool has_mtp) {
  const RunnerCapacity& capacity = options.capacity;
  return {.num_pages = static_cast<int32_t>(capacity.num_pages),
          .num_slots = capacity.num_slots,
          .max_context = static_cast<int32_t>(capacity.context),
          .max_step_tokens = static_cast<int32_t>(capacity.step_tokens),
          .max_logit_rows = static_cast<int32_t>(capacity.logit_rows),
          .prefix_cache = options.prefix_cache,
          .writes_mtp_rows = has_mtp,
          .speculation = options.speculation,
          .max_draft_tokens = options.max_draft_tokens};
}

Engine::Engine(EngineOptions options, const base::Clock& clock)
    : options_(std::move(options)), clock_(clock) {}

base::Result<std::unique_ptr<Engine>> Engine::create(const LoadedModel& model,
                                                     base::ThreadTeam& team, EngineOptions options,
                                                     const base::Clock& clock) {
  const bool has_mtp = model.transformer().has_mtp();
  CHECK(has_mtp || options.speculation == SpeculationMode::kOff, "drafts need the MTP layer");
  for (int32_t id = 0; options.tokenizer != nullptr && id < model.config().vocab_size; ++id) {
    CHECK(options.tokenizer->has_token(id) || (options.drawable && !options.drawable->allows(id)),
          "an id may be drawn that stands for no token");
  }
  std::unique_ptr<Engine> engine(new Engine(std::move(options), clock));
  const EngineOptions& chosen = engine->options_;
  engine->scheduler_ = std::make_unique<scheduler::Scheduler>(
      TRY(scheduler::Scheduler::create(scheduler_config(chosen, has_mtp))));
  engine->runner_ = TRY(ModelRunner::create(model, team, chosen.capacity));
  engine->model_executor_ = std::make_unique<ModelExecutor>(
      *engine->runner_, chosen.drawable.value_or(TokenMask(model.config().vocab_size)), clock,
      ExecutorOptions{.simulated_acceptance = chosen.simulated_acceptance});
  if (chosen.wrap_executor) {
    engine->wrapped_executor_ = chosen.wrap_executor(*engine->model_executor_);
  }
  engine->max_request_tokens_ = engine->scheduler_->max_request_tokens();
  engine->publish();
  engine->thread_ = std::thread([raw = engine.get()] { raw->serve(); });
  return engine;
}

Engine::~Engine() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    refuses_new_ = true;
  }
  work_arrived_.notify_one();
  if (thread_.joinable()) thread_.join();
}

base::Status Engine::check(const EngineRequest& request) const {
  const int64_t vocab_size = model_config().vocab_size;
  if (request.prompt.empty()) return base::error("the prompt is empty; give at least one token");
  TRY(check_ids("the prompt", request.prompt, vocab_size));
  TRY(check_ids("stop_token_ids", request.stop_token_ids, vocab_size));
  TRY(engine::check(request.sampling, vocab_size));
  for (const auto& [what, value] : {std::pair("max_tokens", request.max_tokens.value_or(0)),
                                    std::pair("min_tokens", request.min_tokens),
                                    std::pair("max_draft_tokens", request.max_draft_tokens)}) {
    if (value < 0) return base::error("{} is {}; it cannot be negative", what, value);
  }
  const auto num_prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const int64_t room = max_request_tokens_ - num_prompt_tokens;
  if (request.max_tokens.value_or(1) > room) {
    return base::error(
        "the prompt has {} tokens{}; the context served here has {}, output included",
        num_prompt_tokens,
        request.max_tokens ? fmt::format(" and max_tokens is {}", *request.max_tokens) : "",
        max_request_tokens_);
  }
  if (request.min_tokens > request.max_tokens.value_or(static_cast<int32_t>(room))) {
    return base::error("min_tokens is {}, more than the {} that max_tokens or the context allows",
                       request.min_tokens, request.max_tokens.value_or(static_cast<int32_t>(room)));
  }
  for (const std::string& stop : request.stop_strings) {
    if (stop.empty()) return base::error("a stop string is empty; it would end every answer");
  }
  if (!request.stop_strings.empty() && options_.tokenizer == nullptr) {
    return base::error("stop strings need the model's tokenizer, and it was not loaded");
  }
  return {};
}

base::Result<RequestId> Engine::submit(EngineRequest request, UpdateSink sink) {
  CHECK(sink != nullptr);
  if (base::Status status = check(request); !status) {
    ++num_refused_;
    return std::unexpected(std::move(status).error());
  }
  RequestId id = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (refuses_new_) {
      ++num_refused_;
      return base::error("the engine is shutting down and takes no new requests");
    }
    // Within the lock, so that requests arrive in the order of their ids.
    id = ++last_id_;
    ++num_unreported_;
    mailbox_.push_back({.id = id, .request = std::move(request), .sink = std::move(sink)});
  }
  work_arrived_.notify_one();
  return id;
}

void Engine::cancel(RequestId id) {
  {
    const std::scoped_lock lock(mutex_);
    mailbox_.push_back({.id = id});
  }
  work_arrived_.notify_one();
}

void Engine::refuse_new() {
  const std::scoped_lock lock(mutex_);
  refuses_new_ = true;
}

bool Engine::wait_until_idle(base::Duration time_limit) const {
  std::unique_lock lock(mutex_);
  return became_idle_.wait_for(lock, time_limit, [this] { return num_unreported_ == 0; });
}

EngineStats Engine::stats() const {
  const std::scoped_lock lock(mutex_);
  EngineStats stats = stats_;
  stats.num_refused = num_refused_;
  return stats;
}

void Engine::serve() {
  // Not step by step: between steps another thread's work might take it elsewhere.
  const base::ThreadTeam::Seat seat(runner_->team());
  while (take_commands()) step();
  end_all();
}

// Sleeps until there is something to do; false: the engine is to end.
bool Engine::take_commands() {
  const bool has_work = !scheduler_->idle();
  std::vector<Command> commands;
  {
    std::unique_lock lock(mutex_);
    work_arrived_.wait(lock, [&] { return has_work || stopping_ || !mailbox_.empty(); });
    if (stopping_) return false;
    std::swap(commands, mailbox_);
  }
  ++num_turns_;
  const base::Instant began = clock_.now();
  for (Command& command : commands) {
    if (command.sink) {
      start(std::move(command));
    } else {
      scheduler_->cancel(command.id, began);
    }
  }
  working_stats_.scheduling += clock_.now() - began;
  return true;
}

void Engine::start(Command command) {
  EngineRequest& request = command.request;
  const auto num_prompt_tokens = static_cast<int32_t>(request.prompt.size());
  outputs_.try_emplace(command.id, request, num_prompt_tokens, options_.tokenizer,
                       std::move(command.sink));
  std::vector<int32_t> stop_token_ids = std::move(request.stop_token_ids);
  if (!request.ignore_eos) {
    for (const int64_t id : model_config().eos_token_ids) {
      stop_token_ids.push_back(static_cast<int32_t>(id));
    }
  }
  model_executor_->add(command.id, request.prompt,
                       {.sampling = std::move(request.sampling),
                        .min_tokens = request.min_tokens,
                        .stop_token_ids = stop_token_ids,
                        .wants_prompt_logprobs = request.wants_prompt_logprobs,
                        .grammar = std::move(request.grammar)});
  scheduler::Request asked = {
      .id = command.id,
      .prompt = std::move(request.prompt),
      .max_tokens = request.max_tokens.value_or(max_request_tokens_ - num_prompt_tokens),
      .min_tokens = request.min_tokens,
      .stop_token_ids = std::move(stop_token_ids),
      .priority = request.priority,
      .deadline = request.deadline,
      .cache_salt = std::move(request.cache_salt),
      .reads_prefix_cache = !request.wants_prompt_logprobs,
      .wants_prompt_logits = request.wants_prompt_logprobs,
      .max_draft_tokens = request.max_draft_tokens};
  if (options_.on_request) options_.on_request(asked);
  const base::Status status = scheduler_->add(std::move(asked), clock_.now());
  CHECK(status.has_value(), "submit let a request through that the scheduler refuses");
}

void Engine::step() {
  const base::Instant began = clock_.now();
  const scheduler::Batch& batch = scheduler_->schedule(began);
  working_stats_.scheduling += clock_.now() - began;
  // Who left, or is late, hears of it before the step and not after.
  deliver();
  if (batch.sequences.empty()) {
    CHECK(scheduler_->idle(), "requests wait and nothing is computed");
    publish();
    return;
  }
  const base::Instant delivered = clock_.now();
  scheduler::Executor& executor =
      wrapped_executor_ ? *wrapped_executor_ : static_cast<scheduler::Executor&>(*model_executor_);
  const scheduler::StepResult& result = executor.execute(batch);
  const base::Instant executed = clock_.now();
  working_stats_.executing += executed - delivered;
  const StepTimes& times = model_executor_->times();
  working_stats_.step_times.drafting += times.drafting;
  working_stats_.step_times.forward += times.forward;
  working_stats_.step_times.drawing += times.drawing;
  scheduler_->commit(result, executed);
  const base::Instant committed = clock_.now();
  working_stats_.scheduling += committed - executed;
  observe_batch(batch, result);
  working_stats_.delivering += clock_.now() - committed;
  deliver();
  publish();
}

void Engine::observe_batch(const scheduler::Batch& batch, const scheduler::StepResult& result) {
  const std::span<StepLogprobs> logprobs = model_executor_->logprobs();
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const scheduler::Batch::Sequence& entry = batch.sequences[i];
    touched_.push_back(entry.request);
    outputs_.at(entry.request)
        .observe(entry, result.sequences[i],
                 i < logprobs.size() ? std::move(logprobs[i]) : StepLogprobs{});
  }
}

// Adds what the scheduler told to the outputs, ends those whose text met a stop string, and sends
// everybody's news.
void Engine::deliver() {
  const base::Instant began = clock_.now();
  for (auto events = scheduler_->take_events(); !events.empty();
       events = scheduler_->take_events()) {
    for (scheduler::RequestEvent& event : events) {
      const RequestId id = event.request;
      if (options_.on_event) options_.on_event(event);
      touched_.push_back(id);
      const auto num_output_tokens = outputs_.at(id).add(std::move(event));
      if (num_output_tokens) scheduler_->stop(id, *num_output_tokens, began);
    }
  }
  // Whoever hears of an end finds it in the statistics.
  if (!touched_.empty()) publish();
  for (const RequestId id : touched_) {
    const auto found = outputs_.find(id);
    if (found == outputs_.end() || !found->second.send()) continue;
    outputs_.erase(found);
    model_executor_->remove(id);
    ++num_reported_;
  }
  touched_.clear();
  working_stats_.delivering += clock_.now() - began;
}

// Everybody who is left gets a report: cancelled.
void Engine::end_all() {
  std::vector<Command> commands;
  {
    const std::scoped_lock lock(mutex_);
    std::swap(commands, mailbox_);
  }
  for (Command& command : commands) {
    if (command.sink) start(std::move(command));
  }
  std::vector<RequestId> ids;
  for (const auto& [id, output] : outputs_) ids.push_back(id);
  std::ranges::sort(ids);
  for (const RequestId id : ids) scheduler_->cancel(id, clock_.now());
  deliver();
  publish();
}

void Engine::publish() {
  working_stats_.scheduler = scheduler_->stats();
  const std::scoped_lock lock(mutex_);
  stats_ = working_stats_;
  num_unreported_ -= std::exchange(num_reported_, 0);
  if (num_unreported_ == 0) became_idle_.notify_all();
}

}  // namespace ingot::engine
