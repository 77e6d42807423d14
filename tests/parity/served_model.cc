#include "parity/served_model.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "engine/model_text.h"
#include "kernels/target.h"
#include "scheduler/step_loop.h"
#include "shadow/watched_executor.h"

namespace ingot::parity {
namespace {

const std::filesystem::path kModel = INGOT_SOURCE_DIR "/models/ingot-3m";

engine::RunnerCapacity capacity_of(const scheduler::SchedulerConfig& config) {
  return {.step_tokens = config.max_step_tokens,
          .logit_rows = config.max_logit_rows == 0 ? config.max_step_tokens : config.max_logit_rows,
          .context = config.max_context,
          .num_pages = config.num_pages,
          .num_slots = config.num_slots};
}

// Hands batches on and keeps what the executor told beside its tokens.
class Recorder final : public scheduler::Executor {
 public:
  explicit Recorder(engine::ModelExecutor& executor) : executor_(executor) {}

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override {
    const scheduler::StepResult& result = executor_.execute(batch);
    for (size_t i = 0; i < batch.sequences.size(); ++i) {
      ServedAnswer& answer = answers[batch.sequences[i].request];
      const engine::StepLogprobs& told = executor_.logprobs()[i];
      answer.logprobs.insert(answer.logprobs.end(), told.drawn.begin(), told.drawn.end());
      answer.prompt_logprobs.insert(answer.prompt_logprobs.end(), told.prompt.begin(),
                                    told.prompt.end());
    }
    return result;
  }

  std::map<scheduler::RequestId, ServedAnswer> answers;

 private:
  engine::ModelExecutor& executor_;
};

// Hands changed batches on.
class Tampering final : public scheduler::Executor {
 public:
  Tampering(scheduler::Executor& executor, const ServedModel::Tamper& tamper)
      : executor_(executor), tamper_(tamper) {}

  const scheduler::StepResult& execute(const scheduler::Batch& batch) override {
    scheduler::Batch changed = batch;
    if (tamper_) tamper_(changed);
    return executor_.execute(changed);
  }

 private:
  scheduler::Executor& executor_;
  const ServedModel::Tamper& tamper_;
};

}  // namespace

ServedModel::ServedModel(int threads) : team_(threads) {
  const char* targets = std::getenv("INGOT_TARGETS");
  engine::RunnerOptions options;
  options.target = kernels::usable_target(targets == nullptr ? "" : targets).value();
  plain_ = engine::LoadedModel::load(kModel, options, team_, clock_).value();
  options.mtp = model::MtpChoice::kLoad;
  with_mtp_ = engine::LoadedModel::load(kModel, options, team_, clock_).value();
}

std::vector<int32_t> ServedModel::tokens_of(const std::string& text) const {
  return engine::load_tokenizer(kModel)
      .value()
      .encode(text, text::ControlTokens::kRecognise)
      .value();
}

ServedModel::Run ServedModel::serve(const scheduler::SchedulerConfig& config,
                                    const std::vector<ServedRequest>& requests,
                                    const Tamper& tamper) {
  const bool speculates = config.speculation != scheduler::SpeculationMode::kOff;
  const engine::LoadedModel& loaded = speculates || config.writes_mtp_rows ? *with_mtp_ : *plain_;
  const auto runner = engine::ModelRunner::create(loaded, team_, capacity_of(config)).value();
  engine::ModelExecutor executor(*runner, engine::TokenMask(loaded.config().vocab_size), clock_);
  Recorder recorder(executor);
  shadow::WatchedExecutor watched(config, recorder,
                                  [&](size_t index) { return executor.drafts(index); });
  Tampering tampering(watched, tamper);
  scheduler::Scheduler scheduler = scheduler::Scheduler::create(config).value();
  scheduler::StepLoop loop(scheduler, tampering, clock_);
  size_t num_arrived = 0;
  for (int step = 0; num_arrived < requests.size() || !scheduler.idle(); ++step) {
    for (const ServedRequest& served : requests) {
      if (served.arrives_before_step != step) continue;
      ++num_arrived;
      executor.add(served.request.id, served.request.prompt, served.drawing);
      EXPECT_TRUE(scheduler.add(served.request, clock_.now()));
      watched.add(served.request);
    }
    loop.step();
    scheduler.check_invariants();
    for (const scheduler::RequestEvent& event : scheduler.take_events()) {
      ServedAnswer& answer = recorder.answers[event.request];
      answer.tokens.insert(answer.tokens.end(), event.tokens.begin(), event.tokens.end());
      if (event.report) {
        answer.report = *event.report;
        executor.remove(event.request);
        watched.remove(event.request, *event.report);
      }
    }
  }
  const base::Status watch = watched.check_idle(scheduler.stats());
  EXPECT_TRUE(tamper || watch) << watch.error().message;
  return {.answers = std::move(recorder.answers),
          .stats = scheduler.stats(),
          .violation = watched.violation()};
}

}  // namespace ingot::parity
