#include "engine/score.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/progress.h"
#include "engine/sampler.h"

namespace ingot::engine {
namespace {

constexpr int64_t kStepTokens = 256;
constexpr int64_t kLogitBytesMax = 256 << 20;

// Adds a step's logits to a score: row i predicts the token after ids[first + i].
base::Status add_rows(std::span<const int32_t> ids, size_t first, std::span<const float> logits,
                      size_t vocabulary, SequenceScore& score) {
  for (size_t row = 0; row * vocabulary < logits.size(); ++row) {
    const std::span<const float> values = logits.subspan(row * vocabulary, vocabulary);
    const size_t position = first + row;
    TRY(check_finite(values, fmt::format("after token {}", position)));
    if (position + 1 < ids.size()) {
      score.nll_sum += log_sum_exp(values) - values[static_cast<size_t>(ids[position + 1])];
    } else {
      score.next_tokens = likeliest(values, kNextTokens);
    }
  }
  return {};
}

}  // namespace

base::Status check_sequences(const std::vector<std::vector<int32_t>>& sequences,
                             const model::ModelConfig& config, int32_t draft_tokens) {
  if (sequences.empty()) return base::error("no token ids; give at least one");
  for (size_t i = 0; i < sequences.size(); ++i) {
    const std::vector<int32_t>& ids = sequences[i];
    if (ids.empty()) return base::error("sequence {} has no token ids; give at least one", i);
    // The last draft is only drawn, never computed on.
    const int64_t drafted = std::max(0, draft_tokens - 1);
    if (static_cast<int64_t>(ids.size()) + drafted > config.max_position_embeddings) {
      return base::error("sequence {} has {} tokens{}, more than the model's {} positions", i,
                         ids.size(), drafted > 0 ? fmt::format(" and {} drafts", draft_tokens) : "",
                         config.max_position_embeddings);
    }
    for (size_t j = 0; j < ids.size(); ++j) {
      if (ids[j] < 0 || ids[j] >= config.vocab_size) {
        return base::error(
            "sequence {}: token id {} at index {} is out of range; the model has ids "
            "0 to {}",
            i, ids[j], j, config.vocab_size - 1);
      }
    }
  }
  return {};
}

std::vector<NextToken> likeliest(std::span<const float> logits, size_t count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto value = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(count, ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    return value(a) > value(b) || (value(a) == value(b) && a < b);
  });
  const double normalizer = log_sum_exp(logits);
  std::vector<NextToken> tokens;
  for (auto id = ids.begin(); id != end; ++id) {
    tokens.push_back({.id = *id, .logit = value(*id), .logprob = value(*id) - normalizer});
  }
  return tokens;
}

std::optional<double> SequenceScore::nll() const {
  if (num_tokens < 2) return std::nullopt;
  return nll_sum / static_cast<double>(num_tokens - 1);
}

RunnerCapacity score_capacity(const ScoreRequest& request, const model::ModelConfig& config) {
  size_t longest = 1;
  for (const auto& ids : request.sequences) longest = std::max(longest, ids.size());
  const auto tokens = static_cast<int64_t>(longest);
  const int64_t context = tokens + request.draft_tokens;
  const int64_t logit_rows_max = std::max<int64_t>(1, kLogitBytesMax / 4 / config.vocab_size);
  const int64_t step = std::min({tokens, kStepTokens, logit_rows_max});
  return {.step_tokens = step,
          .logit_rows = step,
          .context = context,
          .num_pages = (context + scheduler::kPageTokens - 1) / scheduler::kPageTokens,
          .num_slots = 1};
}

namespace {

// The step that computes ids [first, first + count), all with logits.
scheduler::Batch score_batch(std::span<const int32_t> ids, size_t first, size_t count,
                             const std::vector<int32_t>& pages) {
  scheduler::Batch batch;
  scheduler::Batch::Sequence& sequence = batch.sequences.emplace_back();
  sequence.first_position = static_cast<int32_t>(first);
  const auto part = ids.subspan(first, count);
  sequence.tokens.assign(part.begin(), part.end());
  sequence.logit_rows.resize(count);
  std::iota(sequence.logit_rows.begin(), sequence.logit_rows.end(), 0);
  if (first == 0) {
    batch.released_slots = {0};
    sequence.new_pages = pages;
  }
  return batch;
}

}  // namespace

base::Result<std::vector<SequenceScore>> score(ModelRunner& runner, const ScoreRequest& request,
                                               const base::Clock& clock) {
  const base::ThreadTeam::Seat seat(runner.team());
  const auto vocabulary = static_cast<size_t>(runner.config().vocab_size);
  const auto step_tokens = static_cast<size_t>(runner.capacity().step_tokens);
  uint64_t total_tokens = 0;
  for (const auto& ids : request.sequences) total_tokens += ids.size();
  base::Progress progress("scoring", total_tokens, base::Progress::Unit::kTokens, clock);
  uint64_t done_tokens = 0;
  std::vector<SequenceScore> scores;
  std::vector<int32_t> pages(static_cast<size_t>(runner.capacity().num_pages));
  std::iota(pages.begin(), pages.end(), 0);
  for (size_t s = 0; s < request.sequences.size(); ++s) {
    const std::vector<int32_t>& ids = request.sequences[s];
    SequenceScore score{.num_tokens = static_cast<int64_t>(ids.size())};
    for (size_t first = 0; first < ids.size(); first += step_tokens) {
      const size_t count = std::min(step_tokens, ids.size() - first);
      const std::span<const float> logits = runner.forward(score_batch(ids, first, count, pages));
      TRY(add_rows(ids, first, logits, vocabulary, score));
      if (request.sink) TRY(request.sink(s, logits));
      done_tokens += count;
      progress.update(done_tokens);
    }
    if (request.draft_tokens > 0) {
      const DraftStart start{
          .slot = 0, .token = score.next_tokens.front().id, .count = request.draft_tokens};
      auto chains = runner.draft({&start, 1});
      score.draft = TRY(std::move(chains.front()));
    }
    scores.push_back(std::move(score));
  }
  return scores;
}

}  // namespace ingot::engine
