#include <cmath>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/provenance.h"
#include "cli/model_session.h"
#include "cli/options.h"
#include "engine/score.h"
#include "tensor/npy.h"

namespace ingot::cli {
namespace {

namespace json = base::json;
using engine::SequenceScore;

// Writes logits as one .npy file, or as a directory of them when there are several sequences.
class LogitFiles {
 public:
  LogitFiles(std::filesystem::path path, const std::vector<std::vector<int32_t>>& sequences,
             int64_t vocabulary)
      : path_(std::move(path)), sequences_(sequences), vocabulary_(vocabulary) {}

  // A file must be named .npy, so that a slip never replaces another file, such as weights.
  static base::Status check_path(const std::filesystem::path& path, size_t num_sequences) {
    if (path.empty() || num_sequences > 1 || path.extension() == ".npy") return {};
    return base::error("--logits {}: the name of a file of logits ends in .npy", path.string());
  }

  base::Status append(size_t sequence, std::span<const float> logits) {
    if (!writer_) {
      const auto tokens = static_cast<int64_t>(sequences_[sequence].size());
      writer_ = TRY(tensor::NpyWriter::create(TRY(file_of(sequence)), {tokens, vocabulary_}));
      remaining_ = static_cast<size_t>(tokens * vocabulary_);
    }
    TRY(writer_->append(logits));
    remaining_ -= logits.size();
    if (remaining_ > 0) return {};
    TRY(writer_->finish());
    writer_.reset();
    return {};
  }

 private:
  base::Result<std::filesystem::path> file_of(size_t sequence) const {
    if (sequences_.size() == 1) return path_;
    std::error_code code;
    std::filesystem::create_directories(path_, code);
    if (code) return base::error("{}: cannot create: {}", path_.string(), code.message());
    return path_ / fmt::format("{}.npy", sequence);
  }

  std::filesystem::path path_;
  const std::vector<std::vector<int32_t>>& sequences_;
  int64_t vocabulary_;
  std::optional<tensor::NpyWriter> writer_;
  size_t remaining_ = 0;
};

void add_likelihood(json::object& object, std::optional<double> nll) {
  object["nll"] = nll ? json::value(*nll) : json::value(nullptr);
  object["perplexity"] = nll ? json::value(std::exp(*nll)) : json::value(nullptr);
}

json::object sequence_json(const SequenceScore& score) {
  json::object object;
  object["num_tokens"] = score.num_tokens;
  add_likelihood(object, score.nll());
  json::array top;
  for (const engine::NextToken& token : score.next_tokens) {
    top.push_back(
        json::object{{"id", token.id}, {"logit", token.logit}, {"logprob", token.logprob}});
  }
  object["next_tokens"] = std::move(top);
  return object;
}

// The drafted ids; a list of lists when there are several sequences.
json::array draft_json(const std::vector<SequenceScore>& scores) {
  json::array drafts;
  for (const SequenceScore& score : scores) {
    drafts.emplace_back(json::array(score.draft.begin(), score.draft.end()));
  }
  return scores.size() == 1 ? drafts.front().as_array() : drafts;
}

// Mean over every predicted token of all sequences.
std::optional<double> mean_nll(const std::vector<SequenceScore>& scores) {
  double sum = 0;
  int64_t predicted = 0;
  for (const SequenceScore& score : scores) {
    sum += score.nll_sum;
    predicted += score.num_tokens - 1;
  }
  if (predicted == 0) return std::nullopt;
  return sum / static_cast<double>(predicted);
}

void print_json(const std::vector<SequenceScore>& scores, const engine::LoadedModel& model,
                int threads) {
  json::object document = base::result_document("score", {.model_hash = model.hash(),
                                                          .threads = threads,
                                                          .arithmetic = model.arithmetic(),
                                                          .seed = {}});
  int64_t num_tokens = 0;
  json::array sequences;
  for (const SequenceScore& score : scores) {
    num_tokens += score.num_tokens;
    sequences.push_back(sequence_json(score));
  }
  document["num_tokens"] = num_tokens;
  add_likelihood(document, mean_nll(scores));
  if (!scores.front().draft.empty()) document["draft"] = draft_json(scores);
  document["sequences"] = std::move(sequences);
  fmt::print("{}", base::pretty_json(document));
}

void print_text(const std::vector<SequenceScore>& scores) {
  for (size_t i = 0; i < scores.size(); ++i) {
    const SequenceScore& score = scores[i];
    fmt::print("sequence {}: {} tokens", i, score.num_tokens);
    if (const auto nll = score.nll()) {
      fmt::print(", {:.4f} nats a token, perplexity {:.4f}", *nll, std::exp(*nll));
    }
    fmt::print("\n  next token    logit  probability\n");
    for (const engine::NextToken& token : score.next_tokens) {
      fmt::print("  {:>10} {:>8.4f} {:>11.4f}%\n", token.id, token.logit,
                 100 * std::exp(token.logprob));
    }
    if (!score.draft.empty()) fmt::print("  drafts after it: {}\n", fmt::join(score.draft, " "));
  }
}

}  // namespace

base::Result<int> score(const CommonOptions& common, const ScoreOptions& options) {
  TokenIds ids = TRY(read_token_ids(options.token_ids));
  TRY(LogitFiles::check_path(options.logits, ids.sequences.size()));
  const auto session =
      TRY(open_session(common, options.model, std::move(ids), options.draft_tokens));
  const engine::LoadedModel& model = *session->model;
  LogitFiles files(options.logits, session->sequences, model.config().vocab_size);
  engine::ScoreRequest request{.sequences = session->sequences,
                               .draft_tokens = options.draft_tokens};
  if (!options.logits.empty()) {
    request.sink = [&](size_t sequence, std::span<const float> logits) {
      return files.append(sequence, logits);
    };
  }
  const auto runner = TRY(engine::ModelRunner::create(
      model, *session->team, engine::score_capacity(request, model.config())));
  const auto scores = TRY(engine::score(*runner, request, session->clock));
  if (common.json) {
    print_json(scores, model, session->team->size());
  } else {
    print_text(scores);
  }
  return 0;
}

}  // namespace ingot::cli
