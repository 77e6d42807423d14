#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_team.h"
#include "engine/model_executor.h"
#include "tensor/dtype.h"

// Models whose weights follow from a seed, what an independent implementation computes with them,
// and a way to run them in any order of steps.
namespace ingot::parity {

using Ids = std::vector<int32_t>;

// One sequence of a golden case: tests/golden/glm_moe_dsa/NAME, made by tools/make_golden.py.
struct GoldenSequence {
  Ids ids;
  std::vector<float> logits;                     // [ids, vocab]
  std::map<int64_t, std::vector<Ids>> selected;  // by full layer: positions of every row
};

struct GoldenCase {
  std::string name;
  uint64_t seed = 0;
  std::vector<GoldenSequence> sequences;
};

std::vector<std::string> golden_case_names();
GoldenCase read_golden_case(const std::string& name);

// A synthetic checkpoint with a golden case's config, loaded from a temporary directory.
class GoldenModel {
 public:
  struct Options {
    tensor::DType dtype = tensor::DType::kF32;
    int threads = 1;
    engine::NumericOptions numeric;
  };

  // The target is what INGOT_TARGETS says, as in the program.
  GoldenModel(const GoldenCase& golden, const Options& options);
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
  std::vector<std::map<int64_t, std::vector<Ids>>> selected;  // as in GoldenSequence
};

// Runs the steps one after another on a fresh executor whose pages are handed out in a scattered
// order, with a slot a sequence.
Outcome run_steps(GoldenModel& model, const std::vector<Ids>& sequences,
                  const std::vector<Step>& steps);

// Steps that feed every sequence whole, one after another.
std::vector<Step> one_by_one(const std::vector<Ids>& sequences);

}  // namespace ingot::parity
