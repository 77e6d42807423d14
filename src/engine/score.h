#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "engine/model_runner.h"

namespace ingot::engine {

// Token ids of some sequences, checked against the model: each has at least one id, every id is
// below vocab_size, and none is longer than max_position_embeddings, drafts to come included.
base::Status check_sequences(const std::vector<std::vector<int32_t>>& sequences,
                             const model::ModelConfig& config, int32_t draft_tokens = 0);

struct NextToken {
  int32_t id;
  float logit;
  double logprob;  // nats
};

// The `count` likeliest tokens of a row of logits, likeliest first, of equals the lower id.
std::vector<NextToken> likeliest(std::span<const float> logits, size_t count);

// Tokens that a score keeps of what would come next.
inline constexpr size_t kNextTokens = 5;

// How likely a model finds one sequence.
struct SequenceScore {
  int64_t num_tokens = 0;
  double nll_sum = 0;  // nats, over the num_tokens - 1 tokens that have one before them
  std::vector<NextToken> next_tokens = {};  // the likeliest after the last token, likeliest first
  std::vector<int32_t> draft = {};  // what the MTP chain says after the most likely next token

  // Mean negative log-likelihood a predicted token; nothing for a single token.
  std::optional<double> nll() const;
};

// Receives the logits of one sequence in order, some rows at a time: [rows, vocab_size].
using LogitSink = std::function<base::Status(size_t sequence, std::span<const float> logits)>;

struct ScoreRequest {
  const std::vector<std::vector<int32_t>>& sequences;
  int32_t draft_tokens = 0;  // to draft after each sequence; needs the MTP layer
  LogitSink sink = {};       // may be empty
};

// Scores every sequence, one after another, in steps of the runner's size.
// Errors: the sink's, and logits that are not finite.
// REQUIRES: check_sequences passed, and the capacity is score_capacity's.
base::Result<std::vector<SequenceScore>> score(ModelRunner& runner, const ScoreRequest& request,
                                               const base::Clock& clock);

// A capacity that scores these sequences: one slot, cache for the longest and its drafts.
RunnerCapacity score_capacity(const ScoreRequest& request, const model::ModelConfig& config);

}  // namespace ingot::engine
