#include <algorithm>

#include <fmt/format.h>

#include "base/cpu_clock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/provenance.h"
#include "cli/bench_report.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "engine/memory_plan.h"
#include "engine/model_executor.h"
#include "engine/timed_steps.h"

namespace ingot::cli {
namespace {

// 0 leaves a kind of test out, and stands alone.
base::Result<std::vector<int64_t>> lengths(std::string_view option, std::vector<int64_t> values) {
  if (values.size() == 1 && values.front() == 0) return std::vector<int64_t>{};
  if (std::ranges::find(values, 0) != values.end()) {
    return base::error("{}: 0 leaves these tests out, and stands alone", option);
  }
  return values;
}

base::Result<engine::StepBenchmarkOptions> benchmark_options(const CommonOptions& common,
                                                             const BenchEngineOptions& options) {
  engine::StepBenchmarkOptions benchmark {
    .prefill_tokens = TRY(lengths("--prefill", options.prefill))
    , .depths = options.depth, .batches = options.batch, .decode_tokens = options.decode,
      .draft_tokens_max = options.speculative_tokens, .max_step_tokens = options.max_step_tokens,
      .repetitions = options.repetitions, .seed = options.seed
  };
  // Depths that go up need no cache filled again.
  std::ranges::sort(benchmark.depths);
  if (benchmark.prefill_tokens.empty() && benchmark.decode_tokens == 0) {
    return base::error("--prefill 0 and --decode 0 leave nothing to measure");
  }
  if (benchmark.draft_tokens_max > 0 && benchmark.decode_tokens == 0) {
    return base::error("--speculative-tokens: drafts follow decoding; leave --decode 0 out");
  }
  // Of several threads one waits for another, which is no time of the processor.
  if (options.cpu_time && thread_count(common) != 1) {
    return base::error("--cpu-time counts the time of one thread; add --threads 1");
  }
  // What the processor can do, and not what kernels exist for, unless a level is forced.
  benchmark.probe_target = common.targets.empty() ? kernels::detect_target()
                                                  : TRY(kernels::usable_target(common.targets));
  return benchmark;
}

base::Status check_acceptance(const BenchEngineOptions& options) {
  for (const double chance : options.simulated_acceptance) {
    if (!(chance >= 0 && chance <= 1)) {
      return base::error("--simulate-acceptance {}: expected numbers from 0 to 1", chance);
    }
  }
  if (std::ssize(options.simulated_acceptance) > options.speculative_tokens) {
    return base::error(
        "--simulate-acceptance has {} numbers and --speculative-tokens is {}; give no more numbers "
        "than drafts",
        options.simulated_acceptance.size(), options.speculative_tokens);
  }
  return {};
}

base::Status check_context(const engine::RunnerCapacity& capacity,
                           const model::ModelConfig& config) {
  if (capacity.context <= config.max_position_embeddings + scheduler::kPageTokens) return {};
  return base::error(
      "--prefill, --depth and --decode take {} positions, and the model has {}; ask for fewer",
      grouped(static_cast<uint64_t>(capacity.context)),
      grouped(static_cast<uint64_t>(config.max_position_embeddings)));
}

base::Status check_memory(const engine::LoadedModel& model, int team_size,
                          const engine::RunnerCapacity& capacity, uint64_t available_bytes) {
  const auto layers =
      model.transformer().has_mtp() ? model::CacheLayers::kWithMtp : model::CacheLayers::kMain;
  const auto cache_bytes = static_cast<uint64_t>(
      capacity.num_pages * scheduler::kPageTokens *
      model::cache_bytes_per_token(model.config(), model.cache_type(), layers).total());
  const uint64_t bytes =
      cache_bytes + engine::ModelRunner::workspace_bytes(model, team_size, capacity);
  if (bytes <= available_bytes) return {};
  return base::error(
      "cache and workspace take {}, and {} are available; ask for less with "
      "--depth, --batch or --max-step-tokens",
      base::format_bytes(bytes), base::format_bytes(available_bytes));
}

}  // namespace

base::Result<int> bench_engine(const CommonOptions& common, const BenchEngineOptions& options) {
  TRY(check_acceptance(options));
  const engine::StepBenchmarkOptions benchmark = TRY(benchmark_options(common, options));
  const engine::RunnerCapacity capacity = benchmark_capacity(benchmark);
  TRY(check_context(capacity, TRY(model::load_model_config(options.model.model))));
  const auto session =
      TRY(open_session(common, options.model,
                       options.speculative_tokens > 0 ? scheduler::SpeculationMode::kFixed
                                                      : scheduler::SpeculationMode::kOff));
  const engine::LoadedModel& model = *session->model;
  TRY(check_memory(model, session->team->size(), capacity, base::available_memory_bytes()));
  const auto runner = TRY(engine::ModelRunner::create(model, *session->team, capacity));
  const base::ThreadTeam::Seat seat(*session->team);  // as the engine's thread has one
  const base::ThreadCpuClock cpu_clock;
  const base::Clock& clock =
      options.cpu_time ? static_cast<const base::Clock&>(cpu_clock) : session->clock;
  const engine::StepBenchmarkReport report =
      TRY(run_step_benchmark(model, *runner, benchmark, clock, base::available_memory_bytes()));
  if (!common.json) {
    print_bench(report, options);
    return 0;
  }
  base::json::object document =
      base::result_document("bench_engine", {.model_hash = model.hash(),
                                             .threads = session->team->size(),
                                             .arithmetic = model.arithmetic(),
                                             .simulated_acceptance = options.simulated_acceptance,
                                             .seed = options.seed});
  add_bench(document, report, options, model.transformer().ledger());
  fmt::print("{}", base::pretty_json(document));
  return 0;
}

}  // namespace ingot::cli
