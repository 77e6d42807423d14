#include "cli/request_file.h"

#include <algorithm>

#include <fmt/format.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mapped_file.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "cli/engine_session.h"
#include "cli/interrupt.h"
#include "server/batch_job.h"

namespace ingot::cli {
namespace {

namespace json = base::json;

constexpr uint64_t kTextFileBytesMax = uint64_t{1} << 30;

// Absent where the model has no tokenizer: prompts of token ids can be continued all the same.
base::Result<std::optional<engine::ModelText>> open_text_if_any(
    const std::filesystem::path& directory, const model::ModelConfig& config) {
  std::error_code code;
  if (!std::filesystem::exists(directory / "tokenizer.json", code)) {
    base::log_info("this model has no tokenizer.json: only prompts of token ids are answered");
    return std::nullopt;
  }
  return TRY(open_model_text(directory, config));
}

// Of the files that turn requests into tokens and back, and that say how to draw.
std::string hash_of_text_files(const std::filesystem::path& directory) {
  std::string bytes;
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
                           "generation_config.json"}) {
    const auto text = base::read_text_file(directory / name, kTextFileBytesMax);
    bytes += fmt::format("{} {}\n", name, text ? *text : "");
  }
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

// What decides the answers, so that a job goes on with what it began with.
json::object settings(const EngineSession& session, const GenerateOptions& options,
                      const server::BatchInput& input, const std::string& model_name) {
  const engine::LoadedModel& model = *session.model->model;
  const base::Arithmetic arithmetic = model.arithmetic();
  return {{"input_bytes", input.size_bytes()},
          {"input_xxh3", input.hash()},
          {"model", model_name},
          {"model_hash", model.hash()},
          {"text_files_xxh3", hash_of_text_files(options.model.model)},
          {"context_tokens", session.engine->max_request_tokens()},
          {"target", arithmetic.target},
          {"activations", arithmetic.activations},
          {"kv_dtype", arithmetic.kv_dtype},
          {"seed", options.sampling.seed},
          {"simulated_acceptance", json::value_from(options.engine.simulated_acceptance)}};
}

json::object job_document(const EngineSession& session, const GenerateOptions& options,
                          const server::BatchInput& input, const std::string& model_name) {
  json::object document = base::result_document(
      "batch_job", provenance_of(*session.model, options.engine, options.sampling.seed));
  document["settings"] = settings(session, options, input, model_name);
  document["created"] = base::unix_time();
  return document;
}

// What requests may call the model; answers bear the first.
std::vector<std::string> model_names(const GenerateOptions& options) {
  if (!options.served_model_name.empty()) return {options.served_model_name};
  const std::filesystem::path& directory = options.model.model;
  return {std::filesystem::weakly_canonical(directory).filename().string(), directory.string()};
}

// Of the job's beginning, which may have been another run's.
base::Result<int64_t> created(const server::BatchOutput& output) {
  const json::value* value = output.job().if_contains("created");
  const int64_t* time = value == nullptr ? nullptr : value->if_int64();
  if (time == nullptr) {
    return base::error("{}: its job's document has no time of creation; remove both to begin anew",
                       output.partial_path().string());
  }
  return *time;
}

json::object times_json(const engine::EngineStats& stats) {
  return {{"scheduling_seconds", base::seconds(stats.scheduling)},
          {"executing_seconds", base::seconds(stats.executing)},
          {"drafting_seconds", base::seconds(stats.step_times.drafting)},
          {"forward_seconds", base::seconds(stats.step_times.forward)},
          {"drawing_seconds", base::seconds(stats.step_times.drawing)},
          {"delivering_seconds", base::seconds(stats.delivering)}};
}

// Of drafts by their position in the chain, as far as any were made there: how many, and how many
// were right.
json::array drafts_json(const scheduler::SchedulerStats& stats) {
  json::array positions;
  for (size_t i = 0; i < stats.drafted_by_position.size(); ++i) {
    if (stats.drafted_by_position[i] == 0) break;
    positions.push_back(json::object{{"drafted", stats.drafted_by_position[i]},
                                     {"accepted", stats.accepted_by_position[i]}});
  }
  return positions;
}

json::object summary_json(const server::BatchTally& tally, const engine::EngineStats& stats,
                          double elapsed_seconds) {
  return {{"lines", tally.num_lines},
          {"done", tally.num_done},
          {"failed", tally.num_failed},
          {"found", tally.num_found},
          {"seconds", elapsed_seconds},
          {"prompt_tokens", tally.num_prompt_tokens},
          {"cached_tokens", tally.num_cached_tokens},
          {"output_tokens", tally.num_output_tokens},
          {"output_tokens_per_second",
           static_cast<double>(tally.num_output_tokens) / std::max(1e-9, elapsed_seconds)},
          {"steps", stats.scheduler.num_steps},
          {"preemptions", stats.scheduler.num_preemptions},
          {"accepted_tokens", stats.scheduler.num_accepted_tokens},
          {"rejected_tokens", stats.scheduler.num_rejected_tokens},
          {"drafts_by_position", drafts_json(stats.scheduler)},
          {"times", times_json(stats)}};
}

std::string summary_text(const server::BatchTally& tally, double elapsed_seconds) {
  const int64_t num_new = tally.num_done - tally.num_found;
  return fmt::format(
      "{} of {} lines answered{}{}; this run {} in {:.1f} s: {} output tokens ({:.1f} tokens/s), "
      "{} prompt tokens, {} of them cached",
      grouped(tally.num_done - tally.num_failed), grouped(tally.num_lines),
      tally.num_failed == 0 ? "" : fmt::format(", {} failed", grouped(tally.num_failed)),
      tally.num_found == 0 ? "" : fmt::format(", {} by an earlier run", grouped(tally.num_found)),
      grouped(num_new), elapsed_seconds, grouped(tally.num_output_tokens),
      static_cast<double>(tally.num_output_tokens) / std::max(1e-9, elapsed_seconds),
      grouped(tally.num_prompt_tokens), grouped(tally.num_cached_tokens));
}

int report(const CommonOptions& common, const GenerateOptions& options, const ModelSession& session,
           const server::BatchTally& tally, const engine::EngineStats& stats,
           double elapsed_seconds) {
  if (common.json) {
    json::object document = base::result_document(
        "batch", provenance_of(session, options.engine, options.sampling.seed));
    document["out"] = options.out.string();
    for (auto& [name, value] : summary_json(tally, stats, elapsed_seconds)) document[name] = value;
    fmt::print("{}", base::pretty_json(document));
  } else {
    fmt::print("{}: {}\n", options.out.string(), summary_text(tally, elapsed_seconds));
  }
  if (tally.was_stopped) {
    base::log_warning(
        fmt::format("interrupted; what is answered lies in {}.partial, and the same "
                    "command goes on",
                    options.out.string()));
  } else if (tally.num_failed > 0) {
    base::log_warning(
        fmt::format("{} of {} lines have an error instead of an answer; each says why",
                    tally.num_failed, tally.num_lines));
  }
  return tally.was_stopped || tally.num_failed > 0 ? 1 : 0;
}

}  // namespace

base::Result<int> answer_request_file(const CommonOptions& common, const GenerateOptions& options) {
  if (options.out.empty()) {
    return base::error("--requests: say with --out where the answers go");
  }
  const std::filesystem::path& directory = options.model.model;
  const model::ModelConfig config = TRY(model::load_model_config(directory));
  const server::BatchInput input = TRY(server::BatchInput::open(options.requests));
  server::BatchOutput output = TRY(server::BatchOutput::open(options.out));
  const std::optional<engine::ModelText> text = TRY(open_text_if_any(directory, config));
  const server::SamplingDefaults sampling = TRY(server::SamplingDefaults::load(directory));
  const auto session = TRY(open_engine(
      common, options.model, options.engine,
      {.max_running = options.max_running, .max_step_tokens = options.max_step_tokens},
      text ? &text->tokenizer : nullptr,
      {.memory_line = MemoryLine::kSaid,
       .memory_remedy = "ask for less with --kv-tokens, --max-running or --max-step-tokens"}));
  const std::vector<std::string> names = model_names(options);
  TRY(output.begin(job_document(*session, options, input, names.front()), input));
  const int64_t created_at = TRY(created(output));
  const server::BatchService service{
      .engine = *session->engine,
      .text = text ? &*text : nullptr,
      .facts = {.vocab_size = config.vocab_size,
                .num_context_tokens = session->engine->max_request_tokens(),
                .sampling = sampling,
                .seed = options.sampling.seed},
      .model_names = names,
      .simulated_acceptance = options.engine.simulated_acceptance,
      .max_running = options.max_running,
      .created = created_at,
      .local_time = base::local_calendar(created_at)};
  const base::Clock& clock = session->model->clock;
  const base::Instant began = clock.now();
  const InterruptGuard guard;
  base::Progress progress("answering", static_cast<uint64_t>(input.num_lines()),
                          base::Progress::Unit::kRequests, clock,
                          static_cast<uint64_t>(output.num_found()));
  const auto show = [&](const server::BatchTally& tally) {
    const double rate = static_cast<double>(tally.num_output_tokens) /
                        std::max(1e-9, base::seconds(clock.now() - began));
    progress.update(static_cast<uint64_t>(tally.num_done), fmt::format("{:.0f} tokens/s", rate));
  };
  const server::BatchTally tally = TRY(server::run_batch_job(
      service, input, output, clock,
      {.on_progress = show, .wants_more = [] { return !InterruptGuard::pressed(); }}));
  return report(common, options, *session->model, tally, session->engine->stats(),
                base::seconds(clock.now() - began));
}

}  // namespace ingot::cli
