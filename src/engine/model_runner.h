#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/provenance.h"
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
  enum class KvType : uint8_t { kAuto, kF32, kBF16, kFp8 } kv_type = KvType::kAuto;
};

struct RunnerOptions {
  NumericOptions numeric;
  kernels::Target target = kernels::Target::kReference;
  model::Rank rank;
  model::MtpChoice mtp = model::MtpChoice::kLeaveOut;
  // Whether a checkpoint without the MTP layer that is to be loaded is an error, or runs without.
  enum class MtpNeed : uint8_t { kRequired, kIfPresent } mtp_need = MtpNeed::kRequired;
  // What becomes of a model whose hot shapes (kernels::Ledger) run on reference kernels: it is
  // refused before a weight is read, or there is a warning about it.
  enum class SlowKernels : uint8_t { kRefuse, kWarn } slow_kernels = SlowKernels::kWarn;
};

// The cache's type: with kAuto f32 for f32 weights and bf16 for all others.
kernels::CacheType choose_cache_type(NumericOptions::KvType choice, const model::Weights& weights);

// Which kernels and types a model would run with, found from shapes alone, so that nothing is read
// for a model that cannot run. Errors: a use without a kernel; a slow one, if these are refused.
struct KernelChoice {
  model::TransformerOptions options;
  kernels::Ledger ledger;  // of the main layers, and of the MTP layer where it is loaded
};
base::Result<KernelChoice> choose_kernels(const model::ModelConfig& config,
                                          const model::LoadPlan& plan,
                                          const RunnerOptions& options);

// A model directory that was opened, planned and loaded: config, weights in memory, and the model
// put together from them. Immutable.
class LoadedModel {
 public:
  // Errors: everything that keeps the model from being loaded right, in one line.
  static base::Result<std::unique_ptr<LoadedModel>> load(const std::filesystem::path& directory,
                                                         const RunnerOptions& options,
                                                         base::ThreadTeam& team,
                                                         const base::Clock& clock);

  const model::ModelConfig& config() const { return config_; }
  const model::Transformer& transformer() const { return *transformer_; }
  const std::string& hash() const { return hash_; }
  kernels::CacheType cache_type() const { return cache_type_; }
  uint64_t weight_bytes() const { return weights_->size_bytes(); }
  // In what arithmetic it runs, for provenance: nothing in it is "auto".
  base::Arithmetic arithmetic() const;
  // What is worth saying at start, a line each: also where config and file disagree.
  const std::vector<std::string>& notes() const { return notes_; }
  // Of what runs slower than it could, in a line; empty where nothing does.
  const std::string& slow_kernels() const { return slow_kernels_; }
  model::ActivationChoice activation_choice() const { return activation_choice_; }
  // Shapes and formats of what is loaded.
  const model::Weights& weights() const { return *weights_; }

 private:
  LoadedModel() = default;

  model::ModelConfig config_;
  std::unique_ptr<model::Weights> weights_;
  std::unique_ptr<model::Transformer> transformer_;
  kernels::CacheType cache_type_ = kernels::CacheType::kF32;
  kernels::Target target_ = kernels::Target::kReference;
  model::ActivationChoice activation_choice_ = model::ActivationChoice::kAuto;
  std::string hash_;
  std::vector<std::string> notes_;
  std::string slow_kernels_;
};

// The largest step, and how much cache and how many sequences there are.
struct RunnerCapacity {
  int64_t step_tokens = 0;  // rows of one step
  int64_t logit_rows = 0;   // of them with logits
  int64_t context = 0;      // positions of one sequence
  int64_t num_pages = 0;
  int32_t num_slots = 0;
};

// Where a chain of drafts starts: a slot whose tokens are computed, the token that follows them,
// and how many to draft.
struct DraftStart {
  int32_t slot = 0;
  int32_t token = 0;
  int32_t count = 0;
};

// What a step computed.
struct ComputedStep {
  struct Sequence {
    std::vector<int32_t> drafts = {};  // after the batch's tokens
    int64_t first_logit_row = 0;       // rows for the batch's logit_rows, then one a draft
    std::string error = {};            // not empty: what was drafted is not finite
  };

  std::span<const float> logits = {};    // [rows, vocab_size], valid until the next call
  std::vector<Sequence> sequences = {};  // of the batch, in its order
};

// Runs batches on a model: keeps the paged cache, the page table of every slot and the workspace.
// When the model has its MTP layer, that layer's rows are written for every token as well, and each
// slot keeps the hidden state of its last token. Draws nothing and ends nothing. One thread uses
// it; it is member 0 of the team.
class ModelRunner {
 public:
  // `model` and `team` must outlive it. Errors: not enough memory.
  static base::Result<std::unique_ptr<ModelRunner>> create(const LoadedModel& model,
                                                           base::ThreadTeam& team,
                                                           const RunnerCapacity& capacity);

  // Memory that create() takes beside the cache's pages.
  static uint64_t workspace_bytes(const LoadedModel& model, int team_size,
                                  const RunnerCapacity& capacity);

  // Computes a step, and returns logits [wanted rows in batch order, vocab_size], valid until the
  // next call. REQUIRES: no sequence drafts; token ids are below vocab_size; slots, pages and sizes
  // are within the capacity; each sequence's pages cover its positions; positions continue what is
  // in the cache.
  std::span<const float> forward(const scheduler::Batch& batch,
                                 const model::ForwardObserver* observer = nullptr);

  // A step with drafts is two calls. `draft_step` drafts after the tokens of each sequence as many
  // as its num_draft_tokens says, and `compute_step` of the same batch computes the tokens and
  // them. Until `accept` says otherwise, every draft counts as rejected. After an exception from
  // either the next step may begin, without this one's sequences: their slots hold nothing until
  // they were released. REQUIRES: as above; who drafts wants the logits of its last token, and has
  // all tokens before that one computed; the model has its MTP layer.
  void draft_step(const scheduler::Batch& batch);
  const ComputedStep& compute_step(const scheduler::Batch& batch);

  const ComputedStep& last_step() const { return step_; }

  // Of the last step's sequence number `index`, the first `num_accepted` drafts were right.
  void accept(size_t index, int32_t num_accepted);

  // Drafts after each start, greedily: the MTP layer's rows at the slots that follow, each from the
  // state and token of the one before. With index_share_for_mtp_iteration all of a chain's rows
  // attend to what its first row selected. Returns the drafts in the order of starts; a chain ends
  // with an error where its logits are not finite.
  // REQUIRES: the model has its MTP layer; at most logit_rows starts; pages and context cover
  // `count` more slots than the tokens that a start's slot holds.
  std::vector<base::Result<std::vector<int32_t>>> draft(
      std::span<const DraftStart> starts, const model::ForwardObserver* observer = nullptr);

  const model::ModelConfig& config() const { return model_.config(); }
  const RunnerCapacity& capacity() const { return capacity_; }
  base::ThreadTeam& team() { return team_; }

 private:
  // Rows of a step in the form that the model takes; kept to avoid allocating in a step.
  struct Rows {
    std::vector<int32_t> tokens;
    std::vector<int32_t> positions;
    std::vector<const int32_t*> page_tables;
    std::vector<uint8_t> writes;
    std::vector<int32_t> logit_rows;
    std::vector<int32_t> hidden_rows;  // of the MTP layer's rows: into hidden_
    std::vector<int32_t> key_counts;   // of drafts that share a selection

    void clear();
    kernels::BatchRows view() const;
  };

  // One sequence's part in the step.
  struct Part {
    int32_t slot;
    int32_t first_position;
    int32_t num_tokens;  // without drafts
    int32_t first_row;
  };

  ModelRunner(const LoadedModel& model, base::ThreadTeam& team, const RunnerCapacity& capacity)
      : model_(model), team_(team), capacity_(capacity) {}
  static model::StepLimits limits_of(const LoadedModel& model, int team_size,
                                     const RunnerCapacity& capacity);
  static int64_t num_hidden_floats(const LoadedModel& model, const RunnerCapacity& capacity);
  bool has_mtp() const { return model_.transformer().has_mtp(); }
  float* hidden_row(int32_t row) {
    return hidden_.data() + static_cast<int64_t>(row) * config().hidden_size;
  }
  void update_page_tables(const scheduler::Batch& batch);
  void draft_for(const scheduler::Batch& batch);
  void compute(const scheduler::Batch& batch, const model::ForwardObserver* observer);
  void flatten(const scheduler::Batch& batch);
  void append_sequence(const scheduler::Batch::Sequence& sequence,
                       const std::vector<int32_t>& drafts);
  void append_row(const scheduler::Batch::Sequence& sequence, int32_t index, int32_t token,
                  int32_t first_row);
  void append_mtp_row(const scheduler::Batch::Sequence& sequence, int32_t index, int32_t token,
                      int32_t first_row);
  void append_draft_row(const DraftStart& start, int32_t token, int32_t step, bool shares);
  void run_draft_rows(int32_t step, const model::ForwardObserver* observer);

  const LoadedModel& model_;
  base::ThreadTeam& team_;
  const RunnerCapacity capacity_;
  std::unique_ptr<model::KvCache> cache_;
  std::unique_ptr<model::Workspace> workspace_;
  std::vector<std::vector<int32_t>> page_tables_;  // by slot
  std::vector<int32_t> num_computed_;              // by slot: positions that are in the cache

  Rows rows_;      // of the main layers
  Rows mtp_rows_;  // of the MTP layer
  // States after the final norm, [num_slots + step_tokens, hidden_size]: first every slot's last
  // one, then the step's. Empty without the MTP layer.
  std::vector<float> hidden_;
  std::vector<Part> parts_;  // of the last step
  ComputedStep step_;
};

}  // namespace ingot::engine
