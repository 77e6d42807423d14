#include "engine/timed_steps.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace ingot::engine {
namespace {

// Of measurement, after which probes are due again.
constexpr base::Duration kMeasuredBetweenRounds = std::chrono::milliseconds(600);

int64_t largest(const std::vector<int64_t>& values) {
  return values.empty() ? 0 : std::ranges::max(values);
}

int64_t positions_of_a_sequence(const StepBenchmarkOptions& options) {
  const int64_t decoded =
      options.decode_tokens == 0
          ? 0
          : largest(options.depths) + options.decode_tokens + options.draft_tokens_max + 1;
  return std::max(decoded, largest(options.prefill_tokens));
}

int64_t pages_of_a_sequence(const StepBenchmarkOptions& options) {
  const int64_t positions = positions_of_a_sequence(options);
  return (positions + scheduler::kPageTokens - 1) / scheduler::kPageTokens;
}

// Repetitions with the one that is not timed, and what fills the cache.
uint64_t tokens_to_compute(const StepBenchmarkOptions& options) {
  const int64_t runs = options.repetitions + 1;
  int64_t tokens = 0;
  for (const int64_t prefill : options.prefill_tokens) tokens += prefill * runs;
  if (options.decode_tokens > 0) {
    tokens += largest(options.depths) * largest(options.batches);
    for (const int64_t batch : options.batches) {
      tokens += std::ssize(options.depths) * batch * options.decode_tokens *
                (runs + options.draft_tokens_max);
    }
  }
  return static_cast<uint64_t>(tokens);
}

// A batch and what there is to count of it.
struct Step {
  scheduler::Batch batch;
  model::StepRows rows;
};

class Run {
 public:
  Run(const LoadedModel& model, ModelRunner& runner, const StepBenchmarkOptions& options,
      const base::Clock& clock, ProbeRounds& probes)
      : model_(model),
        runner_(runner),
        options_(options),
        clock_(clock),
        probes_(probes),
        costs_(model.config(), model.weights(), model.activation_choice(), model.cache_type()),
        tokens_(base::random_stream(options.seed, "benchmark tokens")),
        progress_("measuring", tokens_to_compute(options), base::Progress::Unit::kTokens, clock),
        has_pages_(static_cast<size_t>(runner.capacity().num_slots)),
        num_cached_(has_pages_.size()) {}

  StepBenchmarkReport run();

 private:
  int32_t token(int64_t slot, int64_t position) const;
  scheduler::Batch::Sequence sequence(int64_t slot, int64_t first, int64_t count) const;
  std::vector<Step> prefill_steps(int64_t tokens) const;
  std::vector<Step> decode_steps(int64_t depth, int64_t batch) const;
  void forward(Step step, const model::ForwardObserver* observer = nullptr);
  void fill(int64_t slot, int64_t depth);
  void rewind(int64_t batch, int64_t position);
  model::StepCost cost_of(const Step& step) const;
  TestResult count(TestResult test, const std::vector<Step>& steps);
  void time(TestResult& test, const std::vector<Step>& steps);
  SpeculationResult speculate(int64_t depth, int64_t batch, int32_t draft_tokens);
  base::Duration timed(const auto& work);
  void count_done(int64_t tokens);
  void probe_at_repetition();

  const LoadedModel& model_;
  ModelRunner& runner_;
  const StepBenchmarkOptions& options_;
  const base::Clock& clock_;
  ProbeRounds& probes_;
  model::StepCostModel costs_;
  base::RandomStream tokens_;
  base::Progress progress_;
  uint64_t num_done_ = 0;            // of its tokens
  std::vector<bool> has_pages_;      // by slot
  std::vector<int64_t> num_cached_;  // by slot: first positions whose rows are those of its tokens
  base::Duration measured_since_probes_{};
  base::Duration measured_{};
  base::Duration processor_{};
  int64_t rounds_a_repetition_ = 1;
};

// Every position of a slot has one token for good, so that whatever test wrote a row last, it is
// the one that the next test needs.
int32_t Run::token(int64_t slot, int64_t position) const {
  const auto counter = static_cast<uint64_t>(slot) << 32 | static_cast<uint64_t>(position);
  return static_cast<int32_t>(tokens_.word(counter) %
                              static_cast<uint64_t>(model_.config().vocab_size));
}

scheduler::Batch::Sequence Run::sequence(int64_t slot, int64_t first, int64_t count) const {
  scheduler::Batch::Sequence part{.slot = static_cast<int32_t>(slot),
                                  .first_position = static_cast<int32_t>(first)};
  for (int64_t i = 0; i < count; ++i) part.tokens.push_back(token(slot, first + i));
  return part;
}

// Of slot 0, with logits of the last token.
std::vector<Step> Run::prefill_steps(int64_t tokens) const {
  std::vector<Step> steps;
  for (int64_t first = 0; first < tokens; first += options_.max_step_tokens) {
    const int64_t count = std::min(options_.max_step_tokens, tokens - first);
    Step step;
    step.batch.sequences.push_back(sequence(0, first, count));
    step.rows.sequences.push_back({.first_position = first, .count = count});
    if (first + count == tokens) {
      step.batch.sequences.front().logit_rows.push_back(static_cast<int32_t>(count - 1));
      step.rows.logit_rows = 1;
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<Step> Run::decode_steps(int64_t depth, int64_t batch) const {
  std::vector<Step> steps(static_cast<size_t>(options_.decode_tokens));
  for (size_t i = 0; i < steps.size(); ++i) {
    const int64_t position = depth + static_cast<int64_t>(i);
    for (int64_t slot = 0; slot < batch; ++slot) {
      steps[i].batch.sequences.push_back(sequence(slot, position, 1));
      steps[i].batch.sequences.back().logit_rows.push_back(0);
      steps[i].rows.sequences.push_back({.first_position = position, .count = 1});
    }
    steps[i].rows.logit_rows = batch;
  }
  return steps;
}

// A step that is not timed; brings a slot's pages with its first one.
void Run::forward(Step step, const model::ForwardObserver* observer) {
  const int64_t pages = pages_of_a_sequence(options_);
  for (auto& part : step.batch.sequences) {
    const auto slot = static_cast<size_t>(part.slot);
    if (!has_pages_[slot]) {
      for (int64_t page = 0; page < pages; ++page) {
        part.new_pages.push_back(static_cast<int32_t>(static_cast<int64_t>(slot) * pages + page));
      }
      has_pages_[slot] = true;
    }
    const int64_t end = part.first_position + std::ssize(part.tokens);
    num_cached_[slot] = std::max(num_cached_[slot], end);
  }
  runner_.forward(step.batch, observer);
}

// Puts the slot's first `depth` positions into the cache, where they are not yet.
void Run::fill(int64_t slot, int64_t depth) {
  while (num_cached_[static_cast<size_t>(slot)] < depth) {
    const int64_t first = num_cached_[static_cast<size_t>(slot)];
    const int64_t count = std::min(options_.max_step_tokens, depth - first);
    // One row before the new ones is computed again without writing: the MTP layer needs its state.
    const int64_t again = first > 0 ? 1 : 0;
    Step step;
    step.batch.sequences.push_back(sequence(slot, first - again, count + again));
    step.batch.sequences.front().num_read_only_tokens = static_cast<int32_t>(again);
    forward(std::move(step));
    count_done(count);
  }
}

void Run::count_done(int64_t tokens) {
  num_done_ += static_cast<uint64_t>(tokens);
  progress_.update(num_done_);
}

// Makes `position` the next one of the slots, as far as the MTP layer is concerned.
void Run::rewind(int64_t batch, int64_t position) {
  if (!costs_.has_mtp() || position == 0) return;
  Step step;
  for (int64_t slot = 0; slot < batch; ++slot) {
    step.batch.sequences.push_back(sequence(slot, position - 1, 1));
    step.batch.sequences.back().num_read_only_tokens = 1;
  }
  forward(std::move(step));
}

// With the rows that the MTP layer writes for the same tokens, where it is loaded: at one position
// less, since they lie one slot on.
model::StepCost Run::cost_of(const Step& step) const {
  model::StepCost cost = costs_.main(step.rows);
  if (!costs_.has_mtp()) return cost;
  model::StepRows behind;
  for (const model::SequenceRows& rows : step.rows.sequences) {
    const int64_t skipped = rows.first_position == 0 ? 1 : 0;
    if (rows.count == skipped) continue;
    behind.sequences.push_back(
        {.first_position = rows.first_position + skipped - 1, .count = rows.count - skipped});
  }
  if (!behind.sequences.empty()) cost += costs_.mtp(behind);
  return cost;
}

// Runs the steps once without a clock, and counts what experts they choose.
TestResult Run::count(TestResult test, const std::vector<Step>& steps) {
  const int64_t main_layers = model_.config().num_hidden_layers;
  for (Step step : steps) {
    int64_t experts_read = 0;
    const model::ForwardObserver observer{.on_routing = [&](int64_t layer,
                                                            const kernels::BatchRows& rows,
                                                            const kernels::Routing& routing) {
      if (layer == main_layers) return;
      experts_read += std::ssize(std::set<int32_t>(
          routing.experts, routing.experts + rows.count * routing.experts_per_token));
    }};
    forward(step, &observer);
    if (costs_.num_moe_layers() > 0) step.rows.experts_read = static_cast<double>(experts_read);
    test.steps.push_back(cost_of(step));
    test.experts_read += static_cast<double>(experts_read) / static_cast<double>(steps.size());
  }
  count_done(test.total_tokens());
  return test;
}

base::Duration Run::timed(const auto& work) {
  const base::Duration processor_before = base::process_cpu_time();
  const base::Instant begin = clock_.now();
  work();
  const base::Duration elapsed = clock_.now() - begin;
  measured_ += elapsed;
  measured_since_probes_ += elapsed;
  processor_ += base::process_cpu_time() - processor_before;
  return elapsed;
}

void Run::probe_at_repetition() {
  for (int64_t round = 0; round < rounds_a_repetition_; ++round) probes_.run(round == 0);
  measured_since_probes_ = {};
}

void Run::time(TestResult& test, const std::vector<Step>& steps) {
  for (int32_t repetition = 0; repetition < options_.repetitions; ++repetition) {
    probe_at_repetition();
    rewind(test.batch, test.depth);
    base::Duration total{};
    for (const Step& step : steps) {
      if (measured_since_probes_ > kMeasuredBetweenRounds) {
        probes_.run(false);
        measured_since_probes_ = {};
      }
      total += timed([&] { runner_.forward(step.batch); });
    }
    test.seconds.add(base::seconds(total));
    count_done(test.total_tokens());
  }
}

// At each position a plain step, the drafts, and their verification, of which none counts as right.
SpeculationResult Run::speculate(int64_t asked_depth, int64_t batch, int32_t draft_tokens) {
  const int64_t depth = std::max<int64_t>(1, asked_depth);  // a chain starts from a state
  SpeculationResult result{.depth = depth, .batch = batch, .draft_tokens = draft_tokens};
  const std::vector<Step> steps = decode_steps(depth, batch);
  for (int64_t slot = 0; slot < batch; ++slot) fill(slot, depth);
  probe_at_repetition();
  rewind(batch, depth);
  for (const Step& step : steps) {
    if (measured_since_probes_ > kMeasuredBetweenRounds) {
      probes_.run(false);
      measured_since_probes_ = {};
    }
    scheduler::Batch drafting = step.batch;
    for (auto& part : drafting.sequences) part.num_draft_tokens = draft_tokens;
    result.draft.add(base::seconds(timed([&] { runner_.draft_step(drafting); })));
    result.verify.add(base::seconds(timed([&] { runner_.compute_step(drafting); })));
    // The row is in the cache now. Computed again without writing, it is a step as a model without
    // its MTP layer makes it.
    scheduler::Batch plain = step.batch;
    for (auto& part : plain.sequences) part.num_read_only_tokens = 1;
    result.plain.add(base::seconds(timed([&] { runner_.forward(plain); })));
  }
  const Step& middle = steps[steps.size() / 2];
  Step verified = middle;
  for (model::SequenceRows& rows : verified.rows.sequences) rows.count = draft_tokens + 1;
  verified.rows.logit_rows = batch * (draft_tokens + 1);
  result.verify_cost = cost_of(verified);
  for (int32_t draft = 0; draft < draft_tokens; ++draft) {
    model::StepRows rows = middle.rows;
    for (model::SequenceRows& of : rows.sequences) {
      of.first_position = std::max<int64_t>(0, of.first_position - 1 + draft);
    }
    if (draft > 0 && model_.config().index_share_for_mtp_iteration) {
      rows.index_use = model::IndexUse::kReuse;
    }
    result.draft_cost += costs_.mtp(rows);
  }
  // Rows of rejected drafts are not those of the slots' tokens.
  for (int64_t slot = 0; slot < batch; ++slot) {
    num_cached_[static_cast<size_t>(slot)] = depth + std::ssize(steps);
  }
  count_done(batch * options_.decode_tokens);
  return result;
}

StepBenchmarkReport Run::run() {
  StepBenchmarkReport report;
  std::vector<int64_t> depths = options_.depths;
  if (options_.decode_tokens == 0) depths.clear();
  const auto num_decodes = static_cast<int64_t>(depths.size() * options_.batches.size());
  const int64_t repetitions =
      (std::ssize(options_.prefill_tokens) + num_decodes) * options_.repetitions +
      num_decodes * options_.draft_tokens_max;
  rounds_a_repetition_ = (options_.probe_rounds_min + repetitions - 1) / repetitions;
  for (const int64_t tokens : options_.prefill_tokens) {
    const auto steps = prefill_steps(tokens);
    report.tests.push_back(count({.kind = TestKind::kPrefill, .tokens = tokens}, steps));
    time(report.tests.back(), steps);
  }
  for (const int64_t depth : depths) {
    for (const int64_t batch : options_.batches) {
      for (int64_t slot = 0; slot < batch; ++slot) fill(slot, depth);
      rewind(batch, depth);
      const auto steps = decode_steps(depth, batch);
      report.tests.push_back(count({.kind = TestKind::kDecode,
                                    .depth = depth,
                                    .batch = batch,
                                    .tokens = options_.decode_tokens},
                                   steps));
      time(report.tests.back(), steps);
      for (int32_t drafts = 1; drafts <= options_.draft_tokens_max; ++drafts) {
        report.speculation.push_back(speculate(depth, batch, drafts));
      }
    }
  }
  report.processor_share = base::seconds(processor_) /
                           (base::seconds(measured_) * static_cast<double>(runner_.team().size()));
  return report;
}

}  // namespace

RunnerCapacity benchmark_capacity(const StepBenchmarkOptions& options) {
  const int64_t batch =
      options.decode_tokens == 0 ? 1 : std::max<int64_t>(1, largest(options.batches));
  const int64_t rows = batch * (options.draft_tokens_max + 1);
  const int64_t pages = pages_of_a_sequence(options);
  return {.step_tokens = std::max(options.max_step_tokens, rows) + 1,
          .logit_rows = rows,
          .context = pages * scheduler::kPageTokens,
          .num_pages = batch * pages,
          .num_slots = static_cast<int32_t>(batch)};
}

model::StepCost TestResult::cost() const {
  model::StepCost sum;
  for (const model::StepCost& step : steps) sum += step;
  return sum;
}

base::Result<StepBenchmarkReport> run_step_benchmark(const LoadedModel& model, ModelRunner& runner,
                                                     const StepBenchmarkOptions& options,
                                                     const base::Clock& clock,
                                                     uint64_t available_bytes) {
  CHECK(options.draft_tokens_max == 0 || model.transformer().has_mtp());
  CHECK(options.repetitions > 0);
  ProbeRounds probes = TRY(ProbeRounds::create(runner.team(), clock, options.probe_target,
                                               options.probe_slice, available_bytes));
  StepBenchmarkReport report = Run(model, runner, options, clock, probes).run();
  report.probes = probes.readings();
  report.rates = probes.rates();
  return report;
}

}  // namespace ingot::engine
