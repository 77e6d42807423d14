#include "cli/engine_session.h"

#include <charconv>
#include <chrono>
#include <utility>

#include <fmt/format.h>

#include "base/log.h"
#include "base/machine.h"
#include "base/numa.h"
#include "engine/update_queue.h"

namespace ingot::cli {
namespace {

using scheduler::SpeculationMode;

// What an automatic depth goes up to. GLM-5.2's MTP layer accepts 3.61 tokens a step with five
// drafts and 3.78 with six (InferenceX, golden_al_distribution/glm5.2_mtp.yaml).
constexpr int32_t kAutoDepthMax = 5;
constexpr int32_t kDepthMax = 16;

// What --speculative-tokens says, before it is known whether the model has an MTP layer.
struct DraftChoice {
  SpeculationMode mode = SpeculationMode::kOff;
  int32_t max_draft_tokens = 0;
};

base::Result<DraftChoice> draft_choice(const EngineChoices& choices) {
  const std::string& text = choices.speculative_tokens;
  if (text == "auto") {
    return DraftChoice{.mode = SpeculationMode::kAuto, .max_draft_tokens = kAutoDepthMax};
  }
  int32_t depth = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), depth);
  if (code != std::errc() || end != text.data() + text.size() || depth < 0 || depth > kDepthMax) {
    return base::error("--speculative-tokens {}: expected auto, or a number from 0 to {}", text,
                       kDepthMax);
  }
  if (depth == 0) return DraftChoice{};
  return DraftChoice{.mode = SpeculationMode::kFixed, .max_draft_tokens = depth};
}

}  // namespace

base::Result<std::unique_ptr<EngineSession>> open_engine(
    const CommonOptions& common, const ModelOptions& model, const EngineChoices& choices,
    engine::ServingLimits limits, const text::Tokenizer* tokenizer, const MemoryWords& words) {
  DraftChoice drafts = TRY(draft_choice(choices));
  TRY(engine::check_simulated_acceptance(choices.simulated_acceptance,
                                         TRY(model::load_model_config(model.model))));
  if (std::ssize(choices.simulated_acceptance) > drafts.max_draft_tokens) {
    return base::error(
        "--simulate-acceptance has {} numbers and --speculative-tokens {} drafts at most {}; give "
        "no more numbers than drafts",
        choices.simulated_acceptance.size(), choices.speculative_tokens, drafts.max_draft_tokens);
  }
  if (!choices.simulated_acceptance.empty()) {
    base::log_warning("acceptance of drafts is simulated: speeds are real, the output is not");
  }
  auto session = std::make_unique<EngineSession>();
  session->model = TRY(open_session(common, model, drafts.mode));
  const engine::LoadedModel& loaded = *session->model->model;
  if (!loaded.transformer().has_mtp()) {
    if (!choices.simulated_acceptance.empty()) {
      return base::error(
          "--simulate-acceptance: this model has no MTP layer, so nothing is drafted");
    }
    drafts = {};
  }
  limits.max_draft_tokens = drafts.max_draft_tokens;
  if (choices.kv_tokens > 0) limits.kv_tokens = choices.kv_tokens;
  const auto memory = engine::plan_memory(loaded, session->model->team->size(), limits,
                                          base::available_memory_bytes());
  if (!memory) return base::error("{}; {}", memory.error().message, words.memory_remedy);
  session->memory = *memory;
  if (words.memory_line == MemoryLine::kSaid) {
    base::log_info(fmt::format("{}; {}", session->model->team->placement_line(),
                               base::memory_placement().line()));
    base::log_info(session->memory.line());
  }
  engine::EngineOptions options{.capacity = session->memory.capacity,
                                .speculation = drafts.mode,
                                .max_draft_tokens = drafts.max_draft_tokens,
                                .prefix_cache = !choices.no_prefix_cache,
                                .simulated_acceptance = choices.simulated_acceptance,
                                .tokenizer = tokenizer};
  if (tokenizer != nullptr) {
    options.drawable = engine::drawable_ids(*tokenizer, loaded.config().vocab_size);
  }
  session->engine = TRY(engine::Engine::create(loaded, *session->model->team, std::move(options),
                                               session->model->clock));
  return session;
}

base::ProvenanceInputs provenance_of(const ModelSession& session, const EngineChoices& choices,
                                     uint64_t seed) {
  return {.model_hash = session.model->hash(),
          .threads = session.team->size(),
          .arithmetic = session.model->arithmetic(),
          .simulated_acceptance = choices.simulated_acceptance,
          .seed = seed};
}

base::Result<engine::EngineReport> run_request(engine::Engine& engine,
                                               engine::EngineRequest request,
                                               const RequestHooks& hooks) {
  using namespace std::chrono_literals;
  const engine::UpdateQueue queue;
  const scheduler::RequestId id = TRY(engine.submit(std::move(request), queue.sink(0)));
  std::optional<base::Error> failure;
  bool cancelled = false;
  while (true) {
    if (!cancelled && hooks.wants_more && !hooks.wants_more()) {
      engine.cancel(id);
      cancelled = true;
    }
    auto entry = queue.wait_for(50ms);
    if (!entry) continue;
    engine::EngineUpdate& update = entry->update;
    if (hooks.on_update && !failure) {
      if (base::Status status = hooks.on_update(update); !status) {
        failure = std::move(status).error();
        if (!update.report) engine.cancel(id);
      }
    }
    if (!update.report) continue;
    if (failure) return std::unexpected(*std::move(failure));
    if (!update.report->error.empty()) {
      return std::unexpected(base::Error{std::move(update.report->error)});
    }
    return *std::move(update.report);
  }
}

}  // namespace ingot::cli
