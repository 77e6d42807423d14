#include "golden_model.h"

#include <algorithm>
#include <cstdlib>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mapped_file.h"
#include "model/synthetic_checkpoint.h"
#include "tensor/npy.h"

namespace ingot::parity {
namespace {

namespace json = base::json;

const std::filesystem::path kGolden =
    std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/glm_moe_dsa";

json::value read_json(const std::filesystem::path& path) {
  return base::parse_json(base::read_text_file(path, 1 << 24).value(), path.string()).value();
}

Ids ids_of(const json::value& array) {
  Ids ids;
  for (const json::value& id : array.as_array()) ids.push_back(static_cast<int32_t>(id.as_int64()));
  return ids;
}

kernels::Target target_of_environment() {
  const char* forced = std::getenv("INGOT_TARGETS");
  return kernels::usable_target(forced == nullptr ? "" : forced).value();
}

size_t count_pages(size_t tokens) {
  return (tokens + scheduler::kPageTokens - 1) / scheduler::kPageTokens;
}

// Hands out pages, feeds an executor and sorts what comes back by sequence.
class Runner {
 public:
  Runner(GoldenModel& model, const std::vector<Ids>& sequences)
      : model_(model),
        sequences_(sequences),
        computed_(sequences.size(), 0),
        held_pages_(sequences.size(), 0) {
    engine::ExecutorCapacity capacity{.num_slots = static_cast<int32_t>(sequences.size())};
    size_t longest = 0;
    for (const Ids& ids : sequences) {
      capacity.step_tokens += static_cast<int64_t>(ids.size());
      capacity.num_pages += static_cast<int64_t>(count_pages(ids.size()));
      longest = std::max(longest, ids.size());
    }
    capacity.logit_rows = capacity.step_tokens;
    capacity.context = static_cast<int64_t>(longest);
    executor_ = engine::ModelExecutor::create(model.loaded(), model.team(), capacity).value();
    for (int64_t page = 0; page < capacity.num_pages; ++page) {
      free_pages_.push_back(static_cast<int32_t>(page));
    }
    for (size_t i = 0; i + 1 < free_pages_.size(); i += 2)
      std::swap(free_pages_[i], free_pages_.back());
    outcome_.logits.resize(sequences.size());
    outcome_.repeated_logits.resize(sequences.size());
    outcome_.selected.resize(sequences.size());
  }

  void run(const Step& step) {
    scheduler::Batch batch;
    std::vector<size_t> row_sequences;
    for (const Piece& piece : step) append(piece, batch, row_sequences);
    const model::ForwardObserver observer{.on_selection = [&](int64_t layer,
                                                              const kernels::BatchRows& rows,
                                                              const kernels::Selection& selection) {
      record(layer, rows, selection, row_sequences);
    }};
    std::span<const float> logits = executor_->forward(batch, &observer);
    for (const Piece& piece : step) {
      auto& repeated = outcome_.repeated_logits[piece.sequence];
      auto& fresh = outcome_.logits[piece.sequence];
      const size_t split = piece.repeated * model_.vocabulary();
      const size_t size = piece.count * model_.vocabulary();
      repeated.insert(repeated.end(), logits.begin(),
                      logits.begin() + static_cast<ptrdiff_t>(split));
      fresh.insert(fresh.end(), logits.begin() + static_cast<ptrdiff_t>(split),
                   logits.begin() + static_cast<ptrdiff_t>(size));
      logits = logits.subspan(size);
    }
  }

  Outcome take_outcome() { return std::move(outcome_); }

 private:
  void append(const Piece& piece, scheduler::Batch& batch, std::vector<size_t>& row_sequences) {
    size_t& computed = computed_[piece.sequence];
    const size_t first = computed - piece.repeated;
    computed = first + piece.count;
    const auto begin = sequences_[piece.sequence].begin() + static_cast<ptrdiff_t>(first);
    auto& sequence = batch.sequences.emplace_back();
    sequence.slot = static_cast<int32_t>(piece.sequence);
    sequence.first_position = static_cast<int32_t>(first);
    sequence.tokens.assign(begin, begin + static_cast<ptrdiff_t>(piece.count));
    sequence.num_read_only_tokens = static_cast<int32_t>(piece.repeated);
    for (; held_pages_[piece.sequence] < count_pages(computed); ++held_pages_[piece.sequence]) {
      sequence.new_pages.push_back(free_pages_.back());
      free_pages_.pop_back();
    }
    for (size_t i = 0; i < piece.count; ++i) {
      sequence.logit_rows.push_back(static_cast<int32_t>(i));
      row_sequences.push_back(piece.sequence);
    }
  }

  void record(int64_t layer, const kernels::BatchRows& rows, const kernels::Selection& selection,
              const std::vector<size_t>& row_sequences) {
    for (int64_t row = 0; row < rows.count; ++row) {
      if (rows.writes[row] == 0) continue;
      const int64_t keys = rows.num_keys(row);
      Ids positions;
      for (int64_t i = 0; i < std::min(keys, selection.topk); ++i) {
        positions.push_back(selection.takes_all(keys) ? static_cast<int32_t>(i)
                                                      : selection.row(row)[i]);
      }
      outcome_.selected[row_sequences[static_cast<size_t>(row)]][layer].push_back(positions);
    }
  }

  GoldenModel& model_;
  const std::vector<Ids>& sequences_;
  std::vector<size_t> computed_;
  std::vector<size_t> held_pages_;
  std::vector<int32_t> free_pages_;
  std::unique_ptr<engine::ModelExecutor> executor_;
  Outcome outcome_;
};

}  // namespace

std::vector<std::string> golden_case_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kGolden)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

GoldenCase read_golden_case(const std::string& name) {
  const json::value document = read_json(kGolden / name / "case.json");
  const tensor::NpyArray logits = tensor::read_npy(kGolden / name / "logits.npy").value();
  const auto vocabulary = logits.shape[1];
  GoldenCase golden{
      .name = name, .seed = static_cast<uint64_t>(document.at("seed").as_int64()), .sequences = {}};
  auto next = logits.values.begin();
  for (const json::value& entry : document.at("sequences").as_array()) {
    GoldenSequence& sequence = golden.sequences.emplace_back();
    sequence.ids = ids_of(entry.at("ids"));
    const auto end = next + static_cast<int64_t>(sequence.ids.size()) * vocabulary;
    sequence.logits.assign(next, end);
    next = end;
    for (const auto& [layer, rows] : entry.at("selected").as_object()) {
      for (const json::value& row : rows.as_array()) {
        sequence.selected[std::stoll(std::string(layer))].push_back(ids_of(row));
      }
    }
  }
  return golden;
}

GoldenModel::GoldenModel(const GoldenCase& golden, const Options& options)
    : team_(options.threads) {
  std::string name = (std::filesystem::temp_directory_path() / "ingot-parity-XXXXXX").string();
  directory_ = ::mkdtemp(name.data());
  const base::SystemClock clock;
  const auto written = model::write_synthetic_checkpoint(
      directory_, read_json(kGolden / golden.name / "config.json"), options.dtype, golden.seed,
      team_, clock);
  EXPECT_TRUE(written.has_value()) << written.error().message;
  auto loaded = engine::LoadedModel::load(
      directory_, {.numeric = options.numeric, .target = target_of_environment(), .rank = {}},
      team_, clock);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  loaded_ = std::move(loaded).value();
}

GoldenModel::~GoldenModel() { std::filesystem::remove_all(directory_); }

Outcome run_steps(GoldenModel& model, const std::vector<Ids>& sequences,
                  const std::vector<Step>& steps) {
  Runner runner(model, sequences);
  for (const Step& step : steps) runner.run(step);
  return runner.take_outcome();
}

std::vector<Step> one_by_one(const std::vector<Ids>& sequences) {
  std::vector<Step> steps;
  for (size_t i = 0; i < sequences.size(); ++i) {
    steps.push_back({{.sequence = i, .count = sequences[i].size()}});
  }
  return steps;
}

}  // namespace ingot::parity
