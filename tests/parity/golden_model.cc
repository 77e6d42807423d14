#include "golden_model.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "base/mapped_file.h"
#include "engine/sampler.h"
#include "model/synthetic_checkpoint.h"
#include "tensor/npy.h"

namespace ingot::parity {
namespace {

namespace json = base::json;

const std::filesystem::path kGolden = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden";
constexpr const char* kFamilies[] = {"glm_moe_dsa", "glm4_moe_lite", "deepseek_v3", "deepseek_v32"};

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

// Hands out pages, feeds an runner and sorts what comes back by sequence.
class Runner {
 public:
  Runner(GoldenModel& model, const std::vector<Ids>& sequences, int32_t num_drafts)
      : model_(model),
        sequences_(sequences),
        num_drafts_(model.loaded().transformer().has_mtp() ? num_drafts : 0),
        computed_(sequences.size(), 0),
        held_pages_(sequences.size(), 0) {
    engine::RunnerCapacity capacity{.num_slots = static_cast<int32_t>(sequences.size())};
    size_t longest = 0;
    for (const Ids& ids : sequences) {
      capacity.step_tokens += static_cast<int64_t>(ids.size());
      capacity.num_pages += static_cast<int64_t>(count_pages(ids.size() + extra_slots()));
      longest = std::max(longest, ids.size());
    }
    capacity.logit_rows = capacity.step_tokens;
    capacity.context = static_cast<int64_t>(longest + extra_slots());
    runner_ = engine::ModelRunner::create(model.loaded(), model.team(), capacity).value();
    for (int64_t page = 0; page < capacity.num_pages; ++page) {
      free_pages_.push_back(static_cast<int32_t>(page));
    }
    for (size_t i = 0; i + 1 < free_pages_.size(); i += 2) {
      std::swap(free_pages_[i], free_pages_.back());
    }
    outcome_.logits.resize(sequences.size());
    outcome_.repeated_logits.resize(sequences.size());
    outcome_.selected.resize(sequences.size());
  }

  void run(const Step& step) {
    scheduler::Batch batch;
    row_sequences_.clear();
    mtp_row_sequences_.clear();
    for (const Piece& piece : step) append(piece, batch);
    const model::ForwardObserver observer = recorder();
    std::span<const float> logits = runner_->forward(batch, &observer);
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

  void draft() {
    if (num_drafts_ == 0) return outcome_.drafts.resize(sequences_.size());
    std::vector<engine::DraftStart> starts;
    mtp_row_sequences_.clear();
    for (size_t s = 0; s < sequences_.size(); ++s) {
      const std::span<const float> last = std::span(outcome_.logits[s]).last(model_.vocabulary());
      starts.push_back(
          {.slot = static_cast<int32_t>(s), .token = engine::argmax(last), .count = num_drafts_});
      mtp_row_sequences_.push_back(s);
    }
    // Of a chain's rows only the first follows from what the target computed.
    bool first = true;
    const model::ForwardObserver record_all = recorder();
    const model::ForwardObserver observer{.on_selection = [&](int64_t layer,
                                                              const kernels::BatchRows& rows,
                                                              const kernels::Selection& selection) {
      if (std::exchange(first, false)) record_all.on_selection(layer, rows, selection);
    }};
    for (auto& chain : runner_->draft(starts, &observer)) {
      outcome_.drafts.push_back(std::move(chain).value());
    }
  }

  Outcome take_outcome() { return std::move(outcome_); }

 private:
  size_t extra_slots() const { return static_cast<size_t>(num_drafts_); }

  void append(const Piece& piece, scheduler::Batch& batch) {
    size_t& computed = computed_[piece.sequence];
    const size_t first = computed - piece.repeated;
    computed = first + piece.count;
    const auto begin = sequences_[piece.sequence].begin() + static_cast<ptrdiff_t>(first);
    auto& sequence = batch.sequences.emplace_back();
    sequence.slot = static_cast<int32_t>(piece.sequence);
    sequence.first_position = static_cast<int32_t>(first);
    sequence.tokens.assign(begin, begin + static_cast<ptrdiff_t>(piece.count));
    sequence.num_read_only_tokens = static_cast<int32_t>(piece.repeated);
    const bool last = computed == sequences_[piece.sequence].size();
    const size_t pages = count_pages(computed + (last ? extra_slots() : 0));
    for (; held_pages_[piece.sequence] < pages; ++held_pages_[piece.sequence]) {
      sequence.new_pages.push_back(free_pages_.back());
      free_pages_.pop_back();
    }
    for (size_t i = 0; i < piece.count; ++i) {
      sequence.logit_rows.push_back(static_cast<int32_t>(i));
      row_sequences_.push_back(piece.sequence);
      if (i >= piece.repeated && first + i > 0) mtp_row_sequences_.push_back(piece.sequence);
    }
  }

  model::ForwardObserver recorder() {
    return {.on_selection = [this](int64_t layer, const kernels::BatchRows& rows,
                                   const kernels::Selection& selection) {
      const bool mtp = layer == model_.loaded().config().num_hidden_layers;
      record(layer, rows, selection, mtp ? mtp_row_sequences_ : row_sequences_);
    }};
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
  int32_t num_drafts_;
  std::vector<size_t> computed_;
  std::vector<size_t> held_pages_;
  std::vector<int32_t> free_pages_;
  std::unique_ptr<engine::ModelRunner> runner_;
  std::vector<size_t> row_sequences_;      // of the step's rows
  std::vector<size_t> mtp_row_sequences_;  // of the MTP layer's rows
  Outcome outcome_;
};

std::vector<Ids> rows_of(const json::value& array) {
  std::vector<Ids> rows;
  for (const json::value& row : array.as_array()) rows.push_back(ids_of(row));
  return rows;
}

}  // namespace

std::filesystem::path golden_config_path(const std::string& name) {
  return kGolden / name / "config.json";
}

std::vector<std::string> golden_case_names() {
  std::vector<std::string> names;
  for (const std::string family : kFamilies) {
    for (const auto& entry : std::filesystem::directory_iterator(kGolden / family)) {
      names.push_back(family + "/" + entry.path().filename().string());
    }
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
    sequence.draft = ids_of(entry.at("draft"));
    const json::object& keys = entry.as_object();
    if (const json::value* selected = keys.if_contains("selected")) {
      for (const auto& [layer, rows] : selected->as_object()) {
        sequence.selected[std::stoll(std::string(layer))] = rows_of(rows);
      }
    }
    if (const json::value* selected = keys.if_contains("selected_mtp")) {
      const json::value config = read_json(kGolden / name / "config.json");
      sequence.selected[config.at("num_hidden_layers").as_int64()] = rows_of(*selected);
    }
  }
  return golden;
}

GoldenModel::GoldenModel(const GoldenCase& golden, const Options& options)
    : GoldenModel(
          [&](const std::filesystem::path& directory) {
            base::ThreadTeam team(1);
            const auto written = model::write_synthetic_checkpoint(
                directory, read_json(golden_config_path(golden.name)), options.dtype, golden.seed,
                team, base::SystemClock());
            EXPECT_TRUE(written.has_value()) << written.error().message;
          },
          options) {}

GoldenModel::GoldenModel(const std::function<void(const std::filesystem::path&)>& write,
                         const Options& options)
    : team_(options.threads) {
  std::string name = (std::filesystem::temp_directory_path() / "ingot-parity-XXXXXX").string();
  directory_ = ::mkdtemp(name.data());
  write(directory_);
  const model::ModelConfig config = model::load_model_config(directory_).value();
  const base::SystemClock clock;
  auto loaded = engine::LoadedModel::load(
      directory_,
      {.numeric = options.numeric,
       .target = target_of_environment(),
       .mtp = config.num_nextn_predict_layers > 0 ? model::MtpChoice::kLoad
                                                  : model::MtpChoice::kLeaveOut},
      team_, clock);
  EXPECT_TRUE(loaded.has_value()) << loaded.error().message;
  loaded_ = std::move(loaded).value();
}

GoldenModel::~GoldenModel() { std::filesystem::remove_all(directory_); }

std::string first_difference(const Selections& got, const Selections& want) {
  if (got == want) return "";
  if (got.size() != want.size()) return "other layers";
  for (const auto& [layer, rows] : want) {
    const auto found = got.find(layer);
    if (found == got.end()) return fmt::format("layer {} is missing", layer);
    if (found->second.size() != rows.size()) {
      return fmt::format("layer {} has {} rows of {}", layer, found->second.size(), rows.size());
    }
    for (size_t row = 0; row < rows.size(); ++row) {
      if (found->second[row] != rows[row]) {
        return fmt::format("layer {}, row {}: [{}], expected [{}]", layer, row,
                           fmt::join(found->second[row], " "), fmt::join(rows[row], " "));
      }
    }
  }
  return "";
}

Outcome run_steps(GoldenModel& model, const std::vector<Ids>& sequences,
                  const std::vector<Step>& steps, int32_t num_drafts) {
  Runner runner(model, sequences, num_drafts);
  for (const Step& step : steps) runner.run(step);
  runner.draft();
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
