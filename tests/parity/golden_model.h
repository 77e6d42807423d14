#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/model_runner.h"
#include "tensor/dtype.h"

// Models whose weights follow from a seed, what an independent implementation computes with them,
// and a way to run them in any order of steps.
namespace ingot::parity {

using Ids = std::vector<int32_t>;

// By layer with an indexer of its own: the positions that every row attends to. The MTP layer's
// rows stand under num_hidden_layers.
using Selections = std::map<int64_t, std::vector<Ids>>;

// Where two differ first, in one line; empty when they are equal.
std::string first_difference(const Selections& got, const Selections& want);

// One sequence of a golden case: tests/golden/FAMILY/CASE, made by tools/make_golden.py.
struct GoldenSequence {
  Ids ids;
  std::vector<float> logits;  // [ids, vocab]
  Selections selected;
  Ids draft;  // what the MTP chain says after the greedy next token; empty without that layer
};

struct GoldenCase {
  std::string name;  // "FAMILY/CASE"
  uint64_t seed = 0;
  std::vector<GoldenSequence> sequences;
};

std::vector<std::string> golden_case_names();
// The case's config.json.
std::filesystem::path golden_config_path(const std::string& name);
GoldenCase read_golden_case(const std::string& name);

// A synthetic checkpoint with a golden case's config, loaded from a temporary directory, with its
// MTP layer where the config has one.
class GoldenModel {
 public:
  struct Options {
    tensor::DType dtype = tensor::DType::kF32;
    int threads = 1;
    engine::NumericOptions numeric;
  };

  // The target is what INGOT_TARGETS says, as in the program.
  GoldenModel(const GoldenCase& golden, const Options& options);
  // Of the checkpoint that `write` makes in the directory it is given; the dtype is not asked.
  GoldenModel(const std::function<void(const std::filesystem::path&)>& write,
              const Options& options);
  ~GoldenModel();

  const engine::LoadedModel& loaded() const { return *loaded_; }
  base::ThreadTeam& team() { return team_; }
  size_t vocabulary() const { return static_cast<size_t>(loaded_->config().vocab_size); }

 private:
  std::filesystem::path directory_;
  base::ThreadTeam team_;
  std::unique_ptr<engine::LoadedModel> loaded_;
};

// `count` further tokens of one sequence; the first `repeated` of them are computed already and are
// computed again without writing.
struct Piece {
  size_t sequence;
  size_t count;
  size_t repeated = 0;
};
using Step = std::vector<Piece>;

struct Outcome {
  std::vector<std::vector<float>> logits;  // by sequence, of every token but repeated ones
  std::vector<std::vector<float>> repeated_logits;
  std::vector<Selections> selected;
  std::vector<Ids> drafts;  // after the greedy next token; empty without the MTP layer
};

// Runs the steps one after another on a fresh runner whose pages are handed out in a scattered
// order, with a slot a sequence. Then drafts `num_drafts` tokens after all sequences at once.
Outcome run_steps(GoldenModel& model, const std::vector<Ids>& sequences,
                  const std::vector<Step>& steps, int32_t num_drafts = 4);

// Steps that feed every sequence whole, one after another.
std::vector<Step> one_by_one(const std::vector<Ids>& sequences);

}  // namespace ingot::parity
