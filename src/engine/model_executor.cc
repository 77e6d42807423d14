#include "engine/model_executor.h"

#include "base/check.h"
#include "tensor/checkpoint.h"

namespace ingot::engine {
namespace {

using kernels::CacheType;

static_assert(scheduler::kPageTokens == kernels::kPageTokens);

}  // namespace

CacheType choose_cache_type(NumericOptions::KvType choice, const model::Weights& weights) {
  switch (choice) {
    case NumericOptions::KvType::kF32:
      return CacheType::kF32;
    case NumericOptions::KvType::kBF16:
      return CacheType::kBF16;
    case NumericOptions::KvType::kAuto:
      break;
  }
  const kernels::WeightFormat format = weights.layers().front().attention.kv_b.format;
  return format == kernels::WeightFormat::kF32 ? CacheType::kF32 : CacheType::kBF16;
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
  const tensor::Checkpoint checkpoint = TRY(tensor::Checkpoint::open(directory));
  const model::LoadPlan plan = TRY(model::plan_load(loaded->config_, checkpoint, options.rank));
  loaded->weights_ = std::make_unique<model::Weights>(
      TRY(model::Weights::load(loaded->config_, plan, checkpoint, team, clock)));
  loaded->cache_type_ = choose_cache_type(options.numeric.kv_type, *loaded->weights_);
  loaded->transformer_ = std::make_unique<model::Transformer>(
      TRY(model::Transformer::create(loaded->config_, *loaded->weights_,
                                     {.target = options.target,
                                      .activations = options.numeric.activations,
                                      .cache = loaded->cache_type_})));
  loaded->hash_ = model::model_hash(config_text, checkpoint);
  for (const model::Finding& finding : plan.findings) {
    if (finding.severity == model::Severity::kNote) loaded->notes_.push_back(finding.line());
  }
  return loaded;
}

base::Result<std::unique_ptr<ModelExecutor>> ModelExecutor::create(
    const LoadedModel& model, base::ThreadTeam& team, const ExecutorCapacity& capacity) {
  std::unique_ptr<ModelExecutor> executor(new ModelExecutor(model, team, capacity));
  executor->cache_ = std::make_unique<model::KvCache>(
      TRY(model::KvCache::create(model.config(), model.cache_type(), capacity.num_pages)));
  executor->workspace_ = std::make_unique<model::Workspace>(
      TRY(model::Workspace::create(model.config(), {.rows = capacity.step_tokens,
                                                    .logit_rows = capacity.logit_rows,
                                                    .context = capacity.context,
                                                    .team_size = team.size()})));
  executor->page_tables_.resize(static_cast<size_t>(capacity.num_slots));
  return executor;
}

std::span<const float> ModelExecutor::forward(const scheduler::Batch& batch,
                                              const model::ForwardObserver* observer) {
  flatten(batch);
  const model::ForwardBatch forward_batch{
      .rows = {.count = static_cast<int64_t>(tokens_.size()),
               .positions = positions_.data(),
               .page_tables = row_tables_.data(),
               .writes = writes_.data()},
      .tokens = tokens_.data(),
      .logit_rows = logit_rows_.data(),
      .num_logit_rows = static_cast<int64_t>(logit_rows_.size())};
  CHECK(forward_batch.rows.count <= capacity_.step_tokens);
  CHECK(forward_batch.num_logit_rows <= capacity_.logit_rows);
  team_.run([&](int member) {
    model_.transformer().forward(kernels::ExecutionContext(team_, member), forward_batch, *cache_,
                                 *workspace_, observer);
  });
  return {workspace_->logits, logit_rows_.size() * static_cast<size_t>(config().vocab_size)};
}

void ModelExecutor::flatten(const scheduler::Batch& batch) {
  for (const int32_t slot : batch.released_slots) {
    page_tables_.at(static_cast<size_t>(slot)).clear();
  }
  for (auto* rows : {&tokens_, &positions_, &logit_rows_}) rows->clear();
  row_tables_.clear();
  writes_.clear();
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
  const int64_t count = static_cast<int64_t>(sequence.tokens.size());
  const int64_t end = sequence.first_position + count;
  CHECK(sequence.first_position >= 0 && end <= capacity_.context);
  CHECK(end <= static_cast<int64_t>(table.size()) * scheduler::kPageTokens, "pages are missing");
  const auto first_row = static_cast<int32_t>(tokens_.size());
  for (int32_t i = 0; i < count; ++i) {
    const int32_t token = sequence.tokens[static_cast<size_t>(i)];
    CHECK(0 <= token && token < config().vocab_size);
    tokens_.push_back(token);
    positions_.push_back(sequence.first_position + i);
    row_tables_.push_back(table.data());
    writes_.push_back(i < sequence.num_read_only_tokens ? 0 : 1);
  }
  for (const int32_t row : sequence.logit_rows) {
    CHECK(0 <= row && row < count);
    logit_rows_.push_back(first_row + row);
  }
}

}  // namespace ingot::engine
