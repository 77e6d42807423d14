#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "kernels/target.h"
#include "model/kv_cache.h"
#include "model/load_plan.h"
#include "model/transformer.h"
#include "model/weights.h"
#include "model/workspace.h"
#include "scheduler/batch.h"

namespace ingot::engine {

// How the numbers are held and multiplied; the same in every command that runs a model.
struct NumericOptions {
  model::ActivationChoice activations = model::ActivationChoice::kAuto;
  enum class KvType : uint8_t { kAuto, kF32, kBF16 } kv_type = KvType::kAuto;
};

struct ExecutorOptions {
  NumericOptions numeric;
  kernels::Target target = kernels::Target::kReference;
  int threads = 1;
  model::Rank rank;
};

// The cache's type: with kAuto f32 for f32 weights and bf16 for all others.
kernels::CacheType choose_cache_type(NumericOptions::KvType choice, const model::Weights& weights);

// A model directory that was opened, planned and loaded: config, weights in memory, and the model
// put together from them. Immutable.
class LoadedModel {
 public:
  // Errors: everything that keeps the model from being loaded right, in one line.
  static base::Result<std::unique_ptr<LoadedModel>> load(const std::filesystem::path& directory,
                                                         const ExecutorOptions& options,
                                                         base::ThreadTeam& team,
                                                         const base::Clock& clock);

  const model::ModelConfig& config() const { return config_; }
  const model::Transformer& transformer() const { return *transformer_; }
  const std::string& hash() const { return hash_; }
  kernels::CacheType cache_type() const { return cache_type_; }
  uint64_t weight_bytes() const { return weights_->size_bytes(); }
  // What is worth saying at start, a line each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  LoadedModel() = default;

  model::ModelConfig config_;
  std::unique_ptr<model::Weights> weights_;
  std::unique_ptr<model::Transformer> transformer_;
  kernels::CacheType cache_type_ = kernels::CacheType::kF32;
  std::string hash_;
  std::vector<std::string> notes_;
};

// The largest step, and how much cache and how many sequences there are.
struct ExecutorCapacity {
  int64_t step_tokens = 0;  // rows of one step
  int64_t logit_rows = 0;   // of them with logits
  int64_t context = 0;      // positions of one sequence
  int64_t num_pages = 0;
  int32_t num_slots = 0;
};

// Runs batches on a model: keeps the paged cache, the page table of every slot and the workspace.
// One thread uses it; it is member 0 of the team.
class ModelExecutor {
 public:
  // `model` and `team` must outlive it. Errors: not enough memory.
  static base::Result<std::unique_ptr<ModelExecutor>> create(const LoadedModel& model,
                                                             base::ThreadTeam& team,
                                                             const ExecutorCapacity& capacity);

  // Computes a step and returns logits [wanted rows in batch order, vocab_size], valid until the
  // next call. REQUIRES: token ids are below vocab_size; slots, pages and sizes are within the
  // capacity; each sequence's pages cover its positions; positions continue what is in the cache.
  std::span<const float> forward(const scheduler::Batch& batch,
                                 const model::ForwardObserver* observer = nullptr);

  const model::ModelConfig& config() const { return model_.config(); }
  const ExecutorCapacity& capacity() const { return capacity_; }

 private:
  ModelExecutor(const LoadedModel& model, base::ThreadTeam& team, const ExecutorCapacity& capacity)
      : model_(model), team_(team), capacity_(capacity) {}
  void flatten(const scheduler::Batch& batch);
  void append_sequence(const scheduler::Batch::Sequence& sequence);

  const LoadedModel& model_;
  base::ThreadTeam& team_;
  const ExecutorCapacity capacity_;
  std::unique_ptr<model::KvCache> cache_;
  std::unique_ptr<model::Workspace> workspace_;
  std::vector<std::vector<int32_t>> page_tables_;  // by slot

  // The batch's rows in the form that the model takes; kept to avoid allocating in a step.
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<const int32_t*> row_tables_;
  std::vector<uint8_t> writes_;
  std::vector<int32_t> logit_rows_;
};

}  // namespace ingot::engine
