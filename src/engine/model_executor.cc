#include "engine/model_executor.h"

#include <algorithm>

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

base::Result<model::TransformerOptions> choose_kernels(const model::ModelConfig& config,
                                                       const model::LoadPlan& plan,
                                                       const ExecutorOptions& options) {
  const model::Weights shapes = TRY(model::Weights::shapes_of(config, plan, options.mtp));
  const model::TransformerOptions choices{
      .target = options.target,
      .activations = options.numeric.activations,
      .cache = choose_cache_type(options.numeric.kv_type, shapes)};
  TRY(model::Transformer::create(config, shapes, choices));
  return choices;
}

base::Result<std::unique_ptr<LoadedModel>> LoadedModel::load(const std::filesystem::path& directory,
                                                             const ExecutorOptions& options,
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
  const model::LoadPlan plan = TRY(model::plan_load(loaded->config_, checkpoint, options.rank));
  if (options.mtp == model::MtpChoice::kLoad && !plan.has_mtp) {
    TRY(plan.check());
    return base::error(
        "{}: drafts need the model's MTP layer, and this checkpoint has none; leave "
        "drafting off or get the complete checkpoint",
        directory.string());
  }
  const model::TransformerOptions choices = TRY(choose_kernels(loaded->config_, plan, options));
  loaded->weights_ = std::make_unique<model::Weights>(
      TRY(model::Weights::load(loaded->config_, plan, options.mtp, checkpoint, team, clock)));
  loaded->cache_type_ = choices.cache;
  loaded->transformer_ = std::make_unique<model::Transformer>(
      TRY(model::Transformer::create(loaded->config_, *loaded->weights_, choices)));
  loaded->target_ = options.target;
  loaded->hash_ = model::model_hash(config_text, checkpoint);
  loaded->notes_ = model::summarize(plan.findings);
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

base::Result<std::unique_ptr<ModelExecutor>> ModelExecutor::create(
    const LoadedModel& model, base::ThreadTeam& team, const ExecutorCapacity& capacity) {
  std::unique_ptr<ModelExecutor> executor(new ModelExecutor(model, team, capacity));
  const bool mtp = executor->has_mtp();
  executor->cache_ = std::make_unique<model::KvCache>(TRY(model::KvCache::create(
      model.config(), model.cache_type(),
      mtp ? model::CacheLayers::kWithMtp : model::CacheLayers::kMain, capacity.num_pages)));
  executor->workspace_ = std::make_unique<model::Workspace>(
      TRY(model::Workspace::create(model.config(), {.rows = capacity.step_tokens,
                                                    .logit_rows = capacity.logit_rows,
                                                    .context = capacity.context,
                                                    .team_size = team.size(),
                                                    .mtp = mtp})));
  const auto slots = static_cast<size_t>(capacity.num_slots);
  executor->page_tables_.resize(slots);
  executor->num_computed_.resize(slots);
  if (mtp) {
    executor->hidden_.resize((slots + static_cast<size_t>(capacity.step_tokens)) *
                             static_cast<size_t>(model.config().hidden_size));
  }
  return executor;
}

void ModelExecutor::Rows::clear() {
  for (auto* list : {&tokens, &positions, &logit_rows, &hidden_rows, &key_counts}) list->clear();
  page_tables.clear();
  writes.clear();
}

kernels::BatchRows ModelExecutor::Rows::view() const {
  return {.count = static_cast<int64_t>(tokens.size()),
          .positions = positions.data(),
          .page_tables = page_tables.data(),
          .writes = writes.data()};
}

std::span<const float> ModelExecutor::forward(const scheduler::Batch& batch,
                                              const model::ForwardObserver* observer) {
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
    const kernels::ExecutionContext context(team_, member);
    transformer.forward(context, main, *cache_, *workspace_, observer);
    if (mtp.rows.count > 0) transformer.forward_mtp(context, mtp, *cache_, *workspace_, observer);
  });
  if (has_mtp()) keep_last_rows();
  return {workspace_->logits, rows_.logit_rows.size() * static_cast<size_t>(config().vocab_size)};
}

void ModelExecutor::flatten(const scheduler::Batch& batch) {
  for (const int32_t slot : batch.released_slots) {
    page_tables_.at(static_cast<size_t>(slot)).clear();
    num_computed_.at(static_cast<size_t>(slot)) = 0;
  }
  rows_.clear();
  mtp_rows_.clear();
  last_rows_.clear();
  for (const auto& sequence : batch.sequences) {
    CHECK(0 <= sequence.slot && sequence.slot < capacity_.num_slots);
    append_sequence(sequence);
  }
}

void ModelExecutor::append_sequence(const scheduler::Batch::Sequence& sequence) {
  std::vector<int32_t>& table = page_tables_[static_cast<size_t>(sequence.slot)];
  for (const int32_t page : sequence.new_pages) {
    CHECK(0 <= page && page < capacity_.num_pages);
    table.push_back(page);
  }
  const auto count = static_cast<int32_t>(sequence.tokens.size());
  const int64_t end = static_cast<int64_t>(sequence.first_position) + count;
  CHECK(sequence.first_position >= 0 && count > 0 && end <= capacity_.context);
  CHECK(end <= static_cast<int64_t>(table.size()) * scheduler::kPageTokens, "pages are missing");
  const auto first_row = static_cast<int32_t>(rows_.tokens.size());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = sequence.tokens[static_cast<size_t>(i)];
    CHECK(0 <= token && token < config().vocab_size);
    rows_.tokens.push_back(token);
    rows_.positions.push_back(sequence.first_position + i);
    rows_.page_tables.push_back(table.data());
    rows_.writes.push_back(i < sequence.num_read_only_tokens ? 0 : 1);
    if (has_mtp() && i >= sequence.num_read_only_tokens && sequence.first_position + i > 0) {
      append_mtp_row(sequence, i, first_row);
    }
  }
  for (const int32_t row : sequence.logit_rows) {
    CHECK(0 <= row && row < count);
    rows_.logit_rows.push_back(first_row + row);
  }
  num_computed_[static_cast<size_t>(sequence.slot)] = static_cast<int32_t>(end);
  last_rows_.push_back({.slot = sequence.slot, .row = first_row + count - 1});
}

// The MTP layer's row for token `index` of the sequence, from the hidden state before it: of this
// step, or the one that the slot kept.
void ModelExecutor::append_mtp_row(const scheduler::Batch::Sequence& sequence, int32_t index,
                                   int32_t first_row) {
  const int32_t position = sequence.first_position + index - 1;
  if (index == 0) {
    CHECK(num_computed_[static_cast<size_t>(sequence.slot)] == sequence.first_position,
          "the hidden state before the first token is not known; compute that token again");
  }
  mtp_rows_.tokens.push_back(sequence.tokens[static_cast<size_t>(index)]);
  mtp_rows_.positions.push_back(position);
  mtp_rows_.page_tables.push_back(page_tables_[static_cast<size_t>(sequence.slot)].data());
  mtp_rows_.writes.push_back(1);
  mtp_rows_.hidden_rows.push_back(index == 0 ? sequence.slot
                                             : capacity_.num_slots + first_row + index - 1);
}

void ModelExecutor::keep_last_rows() {
  for (const LastRow& last : last_rows_) {
    std::copy_n(hidden_row(capacity_.num_slots + last.row), config().hidden_size,
                hidden_row(last.slot));
  }
}

base::Result<std::vector<std::vector<int32_t>>> ModelExecutor::draft(
    std::span<const DraftStart> starts, int32_t count, const model::ForwardObserver* observer) {
  CHECK(has_mtp(), "drafts need the MTP layer");
  CHECK(static_cast<int64_t>(starts.size()) <=
        std::min(capacity_.logit_rows, capacity_.step_tokens));
  const auto vocabulary = static_cast<size_t>(config().vocab_size);
  std::vector<std::vector<int32_t>> drafts(starts.size());
  for (int32_t step = 0; step < count; ++step) {
    const bool shares = step > 0 && config().index_share_for_mtp_iteration;
    mtp_rows_.clear();
    for (size_t i = 0; i < starts.size(); ++i) {
      append_draft_row(starts[i], step == 0 ? starts[i].token : drafts[i].back(), step, shares);
    }
    model::MtpBatch batch{.rows = mtp_rows_.view(),
                          .tokens = mtp_rows_.tokens.data(),
                          .hidden = step == 0 ? hidden_.data() : workspace_->final_hidden,
                          .hidden_rows = mtp_rows_.hidden_rows.data(),
                          .logit_rows = mtp_rows_.logit_rows.data(),
                          .num_logit_rows = static_cast<int64_t>(starts.size()),
                          .index_use = shares ? model::IndexUse::kReuse : model::IndexUse::kSelect};
    batch.rows.slot_offset = 1;
    if (shares) batch.rows.key_counts = mtp_rows_.key_counts.data();
    team_.run([&](int member) {
      model_.transformer().forward_mtp(kernels::ExecutionContext(team_, member), batch, *cache_,
                                       *workspace_, observer);
    });
    for (size_t i = 0; i < starts.size(); ++i) {
      const std::span<const float> logits(workspace_->logits + i * vocabulary, vocabulary);
      TRY(check_finite(logits, "of a draft"));
      drafts[i].push_back(argmax(logits));
    }
  }
  return drafts;
}

void ModelExecutor::append_draft_row(const DraftStart& start, int32_t token, int32_t step,
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
