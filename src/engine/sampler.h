#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/sampling_params.h"
#include "engine/token_history.h"

namespace ingot::engine {

// The index of the largest value, the first of equals. REQUIRES: !values.empty().
int32_t argmax(std::span<const float> values);

// Natural logarithm of the sum of exp(values), computed in double.
double log_sum_exp(std::span<const float> values);

// An error when a logit is NaN or infinite. `where` continues "the logits ...".
base::Status check_finite(std::span<const float> logits, std::string_view where);

// A token that may still be drawn. Its probability is weight / the sum of all weights.
struct WeightedToken {
  float logit = 0;  // after mask, bias and penalties, before the temperature
  int32_t id = 0;
  double weight = 0;
};

struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;
};

// Memory for the draws of one thread, so that a draw allocates nothing.
struct DrawScratch {
  static constexpr uint64_t size_bytes(int64_t vocab_size) {
    return static_cast<uint64_t>(vocab_size) * (sizeof(float) + 2 * sizeof(WeightedToken));
  }
  // REQUIRES: vocab_size >= 0.
  explicit DrawScratch(int64_t vocab_size);

  std::vector<float> logits;           // after mask, bias and penalties
  std::vector<WeightedToken> kept;     // in order of ids
  std::vector<WeightedToken> ranked;   // shortlists, in no order that matters
  std::vector<TokenLogprob> logprobs;  // of the first-ranked tokens
};

// What a token is drawn from: tokens in order of ids, at least one of them with a weight above 0.
struct Distribution {
  std::span<const WeightedToken> tokens;
  double weight = 0;  // of all tokens, summed in order of ids
};

// `allowed` has TokenMask's words; empty allows all ids. The result lies in the scratch, until it
// is used again. Error: nothing is allowed.
// REQUIRES: logits are finite, or -inf where a token may not be drawn either; check(params) passed;
// the history's ids are below logits.size(), which is at most the scratch's vocab_size;
// allowed.size() is 0 or TokenMask::num_words(logits.size()).
base::Result<Distribution> distribution(std::span<const float> logits, const SamplingParams& params,
                                        const TokenHistory& history,
                                        std::span<const uint32_t> allowed, DrawScratch& scratch);

// Of the model's distribution: temperature 1 and nothing of SamplingParams.
struct Logprobs {
  double logprob = 0;                      // of the token asked for
  std::span<const TokenLogprob> top = {};  // by rank; in the scratch, until it is used again
};
// REQUIRES: logits.size() is at most the scratch's vocab_size, and more than `id`.
Logprobs logprobs_of(std::span<const float> logits, int32_t id, int32_t num_top,
                     DrawScratch& scratch);

struct DrawnToken {
  int32_t id = 0;
  std::optional<double> logprob;               // where num_top_logprobs is given
  std::span<const TokenLogprob> top_logprobs;  // by rank; in the scratch, until it is used again
};

// The token at `output_position` (0 for the first generated one). Draws from the distribution by
// inverse CDF in order of ids with one uniform number that is a function of seed and position
// alone, so that the same request gives the same tokens whatever runs beside it, and a drafted
// token can be accepted when it equals the draw. Errors and REQUIRES: as for distribution.
base::Result<DrawnToken> draw(std::span<const float> logits, const SamplingParams& params,
                              const TokenHistory& history, int64_t output_position,
                              std::span<const uint32_t> allowed, DrawScratch& scratch);

// draw() for a request alone: its own scratch, no mask, no logprobs.
// REQUIRES: that of draw, a logit above -inf, and !uses_history(params).
int32_t sample(std::span<const float> logits, const SamplingParams& params,
               int64_t output_position);

}  // namespace ingot::engine
