#include "engine/model_runner.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "engine/sampler.h"
#include "model/end_of_sequence.h"
#include "tensor/checkpoint.h"

namespace ingot::engine {
namespace {

using kernels::CacheType;

static_assert(scheduler::kPageTokens == kernels::kPageTokens);

// The one lossy default is said, not hidden.
bool multiplies_in_int8_unasked(const model::LoadPlan& plan, const NumericOptions& options) {
  return options.activations == model::ActivationChoice::kAuto &&
         std::ranges::any_of(plan.rows, [](const model::PlanRow& row) {
           return model::held_format(row) == kernels::WeightFormat::kMxfp4;
         });
}

}  // namespace

CacheType choose_cache_type(NumericOptions::KvType choice, const model::Weights& weights) {
  switch (choice) {
    case NumericOptions::KvType::kF32:
      return CacheType::kF32;
    case NumericOptions::KvType::kBF16:
      return CacheType::kBF16;
    case NumericOptions::KvType::kFp8:
      return CacheType::kFp8;
    case NumericOptions::KvType::kAuto:
      break;
  }
  const kernels::WeightFormat format = weights.layers().front().attention.kv_b.format;
  return format == kernels::WeightFormat::kF32 ? CacheType::kF32 : CacheType::kBF16;
}

base::Result<KernelChoice> choose_kernels(const model::ModelConfig& config,
                                          const model::LoadPlan& plan,
                                          const RunnerOptions& options) {
  const model::HeldFor held_for{.target = options.target,
                                .activations = options.numeric.activations};
  const model::Weights shapes = TRY(model::Weights::shapes_of(config, plan, options.mtp, held_for));
  const model::TransformerOptions choices{
      .target = options.target,
      .activations = options.numeric.activations,
      .cache = choose_cache_type(options.numeric.kv_type, shapes)};
  const model::Transformer transformer = TRY(model::Transformer::create(config, shapes, choices));
  if (options.slow_kernels == RunnerOptions::SlowKernels::kRefuse) {
    const std::string slow = transformer.ledger().describe_slow_entries();
    if (!slow.empty()) {
      return base::error("{}; --allow-slow-kernels runs it all the same", slow);
    }
  }
  return KernelChoice{.options = choices, .ledger = transformer.ledger()};
}

base::Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const std::filesystem::path& directory,
                                                             const RunnerOptions& asked,
                                                             base::ThreadTeam& team,
                                                             const base::Clock& clock) {
  std::unique_ptr<LoadedModel> loaded(new LoadedModel());
  const std::string source = TRY(model::config_path(directory))
  .string();
  const std::string config_text = TRY(model::read_config_text(directory));
  loaded->config_ =
      TRY(model::parse_model_config(TRY(base::parse_json(config_text, source)), source));
  const std::vector<int64_t> further_eos = TRY(model::further_end_of_sequence(
      directory, loaded->config_.eos_token_ids, loaded->config_.vocab_size));
  loaded->config_.eos_token_ids.insert(loaded->config_.eos_token_ids.end(), further_eos.begin(),
                                       further_eos.end());
  const tensor::Checkpoint checkpoint = TRY(tensor::Checkpoint::open(directory));
  const model::LoadPlan plan = TRY(model::plan_load(loaded->config_, checkpoint, asked.rank));
  RunnerOptions options = asked;
  if (options.mtp == model::MtpChoice::kLoad && !plan.has_mtp) {
    TRY(plan.check());
    if (options.mtp_need == RunnerOptions::MtpNeed::kRequired) {
      return base::error(
          "{}: drafts need the model's MTP layer, and this checkpoint has none; leave "
          "drafting off or get the complete checkpoint",
          directory.string());
    }
    options.mtp = model::MtpChoice::kLeaveOut;
    loaded->notes_.emplace_back(
        "this checkpoint has no MTP layer, so nothing is drafted: speculation is off");
  }
  const KernelChoice choice = TRY(choose_kernels(loaded->config_, plan, options));
  const model::TransformerOptions& choices = choice.options;
  loaded->slow_kernels_ = choice.ledger.describe_slow_entries();
  loaded->weights_ = std::make_unique<model::Weights>(TRY(model::Weights::load(
      loaded->config_, plan, options.mtp,
      {.target = choices.target, .activations = choices.activations}, checkpoint, team, clock)));
  loaded->cache_type_ = choices.cache;
  loaded->transformer_ = std::make_unique<model::Transformer>(
      TRY(model::Transformer::create(loaded->config_, *loaded->weights_, choices)));
  loaded->target_ = options.target;
  loaded->activation_choice_ = options.numeric.activations;
  loaded->hash_ = model::model_hash(config_text, checkpoint);
  std::ranges::move(model::summarize(plan.findings), std::back_inserter(loaded->notes_));
  if (multiplies_in_int8_unasked(plan, options.numeric)) {
    loaded->notes_.emplace_back(
        "MXFP4 layers multiply in int8 with a scale per 32 activations; --activations bf16 or f32 "
        "avoids that rounding");
  }
  return loaded;
}

base::Arithmetic LoadedModel::arithmetic() const {
  return {.target = std::string(name(target_)),
          .activations = transformer_->activations(),
          .kv_dtype = std::string(name(cache_type_))};
}

base::Result<std::unique_ptr<ModelRunner>> ModelRunner::create(const LoadedModel& model,
                                                               base::ThreadTeam& team,
                                                               const RunnerCapacity& capacity) {
  std::unique_ptr<ModelRunner> runner(new ModelRunner(model, team, capacity));
  const bool mtp = runner->has_mtp();
  runner->cache_ = std::make_unique<model::KvCache>(TRY(model::KvCache::create(
      model.config(), model.cache_type(),
      mtp ? model::CacheLayers::kWithMtp : model::CacheLayers::kMain, capacity.num_pages)));
  runner->workspace_ = std::make_unique<model::Workspace>(
      TRY(model::Workspace::create(model.config(), limits_of(model, team.size(), capacity))));
  const auto slots = static_cast<size_t>(capacity.num_slots);
  runner->page_tables_.resize(slots);
  runner->num_computed_.resize(slots);
  runner->hidden_.resize(static_cast<size_t>(num_hidden_floats(model, capacity)));
  return runner;
}

uint64_t ModelRunner::workspace_bytes(const LoadedModel& model, int team_size,
                                      const RunnerCapacity& capacity) {
  return model::Workspace::size_bytes(model.config(), limits_of(model, team_size, capacity)) +
         static_cast<uint64_t>(num_hidden_floats(model, capacity)) * sizeof(float);
}

model::StepLimits ModelRunner::limits_of(const LoadedModel& model, int team_size,
                                         const RunnerCapacity& capacity) {
  return {.rows = capacity.step_tokens,
          .logit_rows = capacity.logit_rows,
          .context = capacity.context,
          .team_size = team_size,
          .mtp = model.transformer().has_mtp()};
}

// Of the states that the MTP layer starts from: every slot's last one, and the step's.
int64_t ModelRunner::num_hidden_floats(const LoadedModel& model, const RunnerCapacity& capacity) {
  if (!model.transformer().has_mtp()) return 0;
  return (capacity.num_slots + capacity.step_tokens) * model.config().hidden_size;
}

void ModelRunner::Rows::clear() {
  for (auto* list : {&tokens, &positions, &logit_rows, &hidden_rows, &key_counts}) list->clear();
  page_tables.clear();
  writes.clear();
}

kernels::BatchRows ModelRunner::Rows::view() const {
  return {.count = static_cast<int64_t>(tokens.size()),
          .positions = positions.data(),
          .page_tables = page_tables.data(),
          .writes = writes.data()};
}

std::span<const float> ModelRunner::forward(const scheduler::Batch& batch,
                                            const model::ForwardObserver* observer) {
  for (const auto& sequence : batch.sequences) CHECK(sequence.num_draft_tokens == 0);
  update_page_tables(batch);
  step_.sequences.assign(batch.sequences.size(), {});
  compute(batch, observer);
  return step_.logits;
}

void ModelRunner::draft_step(const scheduler::Batch& batch) {
  update_page_tables(batch);
  step_.sequences.assign(batch.sequences.size(), {});
  draft_for(batch);
}

const ComputedStep& ModelRunner::compute_step(const scheduler::Batch& batch) {
  CHECK(step_.sequences.size() == batch.sequences.size(), "another batch was drafted for");
  compute(batch, nullptr);
  return step_;
}

void ModelRunner::update_page_tables(const scheduler::Batch& batch) {
  for (const int32_t slot : batch.released_slots) {
    page_tables_.at(static_cast<size_t>(slot)).clear();
    num_computed_.at(static_cast<size_t>(slot)) = 0;
  }
  for (const auto& sequence : batch.sequences) {
    CHECK(0 <= sequence.slot && sequence.slot < capacity_.num_slots);
    std::vector<int32_t>& table = page_tables_[static_cast<size_t>(sequence.slot)];
    for (const int32_t page : sequence.new_pages) {
      CHECK(0 <= page && page < capacity_.num_pages);
      table.push_back(page);
    }
  }
}

void ModelRunner::draft_for(const scheduler::Batch& batch) {
  std::vector<DraftStart> starts;
  std::vector<ComputedStep::Sequence*> drafting;
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    const auto& sequence = batch.sequences[i];
    if (sequence.num_draft_tokens == 0) continue;
    CHECK(sequence.tokens.size() == 1 && sequence.logit_rows.size() == 1);
    CHECK(num_computed_[static_cast<size_t>(sequence.slot)] == sequence.first_position);
    starts.push_back({.slot = sequence.slot,
                      .token = sequence.tokens.back(),
                      .count = sequence.num_draft_tokens});
    drafting.push_back(&step_.sequences[i]);
  }
  if (starts.empty()) return;
  auto chains = draft(starts);
  for (size_t i = 0; i < chains.size(); ++i) {
    if (chains[i]) {
      drafting[i]->drafts = std::move(*chains[i]);
    } else {
      drafting[i]->error = std::move(chains[i]).error().message;
    }
  }
}

void ModelRunner::compute(const scheduler::Batch& batch, const model::ForwardObserver* observer) {
  flatten(batch);
  const model::ForwardBatch main{
      .rows = rows_.view(),
      .tokens = rows_.tokens.data(),
      .logit_rows = rows_.logit_rows.data(),
      .num_logit_rows = static_cast<int64_t>(rows_.logit_rows.size()),
      .hidden_out = has_mtp() ? hidden_row(capacity_.num_slots) : nullptr};
  model::MtpBatch mtp{.rows = mtp_rows_.view(),
                      .tokens = mtp_rows_.tokens.data(),
                      .hidden = hidden_.data(),
                      .hidden_rows = mtp_rows_.hidden_rows.data()};
  mtp.rows.slot_offset = 1;
  CHECK(main.rows.count <= capacity_.step_tokens && main.num_logit_rows <= capacity_.logit_rows);
  const model::Transformer& transformer = model_.transformer();
  team_.run([&](int member) {
    const kernels::ExecutionContext context(team_, member, transformer.row_operations());
    transformer.forward(context, main, *cache_, *workspace_, observer);
    if (mtp.rows.count > 0) transformer.forward_mtp(context, mtp, *cache_, *workspace_, observer);
  });
  step_.logits = {workspace_->logits,
                  rows_.logit_rows.size() * static_cast<size_t>(config().vocab_size)};
  for (size_t i = 0; i < parts_.size(); ++i) accept(i, 0);
}

void ModelRunner::accept(size_t index, int32_t num_accepted) {
  const Part& part = parts_.at(index);
  CHECK(0 <= num_accepted && num_accepted <= std::ssize(step_.sequences[index].drafts));
  const int32_t count = part.num_tokens + num_accepted;
  num_computed_[static_cast<size_t>(part.slot)] = part.first_position + count;
  if (!has_mtp()) return;
  std::copy_n(hidden_row(capacity_.num_slots + part.first_row + count - 1), config().hidden_size,
              hidden_row(part.slot));
}

void ModelRunner::flatten(const scheduler::Batch& batch) {
  rows_.clear();
  mtp_rows_.clear();
  parts_.clear();
  for (size_t i = 0; i < batch.sequences.size(); ++i) {
    step_.sequences[i].first_logit_row = static_cast<int64_t>(rows_.logit_rows.size());
    append_sequence(batch.sequences[i], step_.sequences[i].drafts);
  }
}

void ModelRunner::append_sequence(const scheduler::Batch::Sequence& sequence,
                                  const std::vector<int32_t>& drafts) {
  const std::vector<int32_t>& table = page_tables_[static_cast<size_t>(sequence.slot)];
  const auto num_tokens = static_cast<int32_t>(sequence.tokens.size());
  const auto num_drafts = static_cast<int32_t>(drafts.size());
  const int64_t end = int64_t{sequence.first_position} + num_tokens + num_drafts;
  CHECK(sequence.first_position >= 0 && num_tokens > 0 && end <= capacity_.context);
  CHECK(end <= static_cast<int64_t>(table.size()) * scheduler::kPageTokens, "pages are missing");
  const auto first_row = static_cast<int32_t>(rows_.tokens.size());
  for (int32_t i = 0; i < num_tokens; ++i) {
    append_row(sequence, i, sequence.tokens[static_cast<size_t>(i)], first_row);
  }
  for (const int32_t row : sequence.logit_rows) {
    CHECK(0 <= row && row < num_tokens);
    rows_.logit_rows.push_back(first_row + row);
  }
  for (int32_t i = 0; i < num_drafts; ++i) {
    rows_.logit_rows.push_back(first_row + num_tokens + i);
    append_row(sequence, num_tokens + i, drafts[static_cast<size_t>(i)], first_row);
  }
  parts_.push_back({.slot = sequence.slot,
                    .first_position = sequence.first_position,
                    .num_tokens = num_tokens,
                    .first_row = first_row});
}

// The row of a token or draft, number `index` of the sequence's part in the step.
void ModelRunner::append_row(const scheduler::Batch::Sequence& sequence, int32_t index,
                             int32_t token, int32_t first_row) {
  CHECK(0 <= token && token < config().vocab_size);
  const bool writes = index >= sequence.num_read_only_tokens;
  rows_.tokens.push_back(token);
  rows_.positions.push_back(sequence.first_position + index);
  rows_.page_tables.push_back(page_tables_[static_cast<size_t>(sequence.slot)].data());
  rows_.writes.push_back(writes ? 1 : 0);
  if (has_mtp() && writes && sequence.first_position + index > 0) {
    append_mtp_row(sequence, index, token, first_row);
  }
}

// The MTP layer's row for a token, from the hidden state before it: of this step, or the one that
// the slot kept.
void ModelRunner::append_mtp_row(const scheduler::Batch::Sequence& sequence, int32_t index,
                                 int32_t token, int32_t first_row) {
  if (index == 0) {
    CHECK(num_computed_[static_cast<size_t>(sequence.slot)] == sequence.first_position,
          "the hidden state before the first token is not known; compute that token again");
  }
  mtp_rows_.tokens.push_back(token);
  mtp_rows_.positions.push_back(sequence.first_position + index - 1);
  mtp_rows_.page_tables.push_back(page_tables_[static_cast<size_t>(sequence.slot)].data());
  mtp_rows_.writes.push_back(1);
  mtp_rows_.hidden_rows.push_back(index == 0 ? sequence.slot
                                             : capacity_.num_slots + first_row + index - 1);
}

std::vector<base::Result<std::vector<int32_t>>> ModelRunner::draft(
    std::span<const DraftStart> starts, const model::ForwardObserver* observer) {
  CHECK(has_mtp(), "drafts need the MTP layer");
  CHECK(static_cast<int64_t>(starts.size()) <=
        std::min(capacity_.logit_rows, capacity_.step_tokens));
  const auto vocabulary = static_cast<size_t>(config().vocab_size);
  std::vector<base::Result<std::vector<int32_t>>> chains(starts.size(), std::vector<int32_t>());
  // The longest first, so that a chain keeps its row, and with it its selection, while others end.
  std::vector<size_t> order(starts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return starts[i].count; });
  std::vector<int32_t> last(starts.size());
  for (size_t i = 0; i < starts.size(); ++i) last[i] = starts[i].token;
  for (int32_t step = 0; !order.empty() && step < starts[order.front()].count; ++step) {
    while (starts[order.back()].count <= step) order.pop_back();
    mtp_rows_.clear();
    const bool shares = step > 0 && config().index_share_for_mtp_iteration;
    for (const size_t i : order) append_draft_row(starts[i], last[i], step, shares);
    run_draft_rows(step, observer);
    for (size_t row = 0; row < order.size(); ++row) {
      const size_t i = order[row];
      const std::span<const float> logits(workspace_->logits + row * vocabulary, vocabulary);
      const base::Status finite = check_finite(logits, "of a draft");
      if (!finite && chains[i]) chains[i] = std::unexpected(finite.error());
      last[i] = finite ? argmax(logits) : 0;
      if (chains[i]) chains[i]->push_back(last[i]);
    }
  }
  return chains;
}

void ModelRunner::run_draft_rows(int32_t step, const model::ForwardObserver* observer) {
  const bool shares = !mtp_rows_.key_counts.empty();
  model::MtpBatch batch{.rows = mtp_rows_.view(),
                        .tokens = mtp_rows_.tokens.data(),
                        .hidden = step == 0 ? hidden_.data() : workspace_->final_hidden,
                        .hidden_rows = mtp_rows_.hidden_rows.data(),
                        .logit_rows = mtp_rows_.logit_rows.data(),
                        .num_logit_rows = static_cast<int64_t>(mtp_rows_.logit_rows.size()),
                        .index_use = shares ? model::IndexUse::kReuse : model::IndexUse::kSelect};
  batch.rows.slot_offset = 1;
  if (shares) batch.rows.key_counts = mtp_rows_.key_counts.data();
  const model::Transformer& transformer = model_.transformer();
  team_.run([&](int member) {
    const kernels::ExecutionContext context(team_, member, transformer.row_operations());
    transformer.forward_mtp(context, batch, *cache_, *workspace_, observer);
  });
}

void ModelRunner::append_draft_row(const DraftStart& start, int32_t token, int32_t step,
                                   bool shares) {
  const auto slot = static_cast<size_t>(start.slot);
  const int32_t first =
      num_computed_.at(slot) - 1;  // position of the state that the chain starts at
  CHECK(first >= 0 && first + 1 + step <
                          static_cast<int64_t>(page_tables_[slot].size()) * scheduler::kPageTokens,
        "pages are missing");
  CHECK(first + 1 + step < capacity_.context, "beyond the context that the workspace has room for");
  const auto row = static_cast<int32_t>(mtp_rows_.tokens.size());
  mtp_rows_.tokens.push_back(token);
  mtp_rows_.positions.push_back(first + step);
  mtp_rows_.page_tables.push_back(page_tables_[slot].data());
  mtp_rows_.writes.push_back(1);
  mtp_rows_.logit_rows.push_back(row);
  mtp_rows_.hidden_rows.push_back(step == 0 ? start.slot : row);
  if (shares) mtp_rows_.key_counts.push_back(first + 1);
}

}  // namespace ingot::engine
