#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"

namespace ingot::engine {

inline constexpr int32_t kTopLogprobsMax = 20;

struct TokenBias {
  int32_t id = 0;
  double bias = 0;
};

// How one request's next token is drawn from a row of logits. The fields act in this order, which
// is vLLM's (the list above class Sampler in its vllm/v1/sample/sampler.py):
//
//   mask, logit_bias, repetition, frequency, presence     greedy decoding sees these as well
//   temperature, min_p, top_k, top_p                      then the draw
//
// Equal logits rank by id, the lower one first, in all that follows: in greedy decoding, at the
// last place of top_k and of top_p, and among the top logprobs. (vLLM and transformers keep all
// equals of the k-th logit instead; here top_k = 1 is greedy, always.)
struct SamplingParams {
  // softmax(logits / temperature). 0 takes the first-ranked token after mask, bias and penalties;
  // then min_p, top_k and top_p change nothing. [0, 100]
  double temperature = 0;
  // Keeps the k first-ranked tokens; 0 keeps all. >= 0
  int32_t top_k = 0;
  // Keeps the shortest run of first-ranked tokens whose probabilities, among those that min_p and
  // top_k kept, sum to at least top_p; 1 keeps all. (0, 1]
  double top_p = 1;
  // Keeps the tokens at least min_p times as probable as the first-ranked one. [0, 1]
  double min_p = 0;
  // Of tokens in prompt or output: logit / penalty where positive, else logit * penalty (Keskar et
  // al. 2019, CTRL). Below 1 it favours repetition. (0, 100]
  double repetition_penalty = 1;
  // Of tokens in the output: logit - frequency_penalty * count - presence_penalty. [-2, 2] each
  double presence_penalty = 0;
  double frequency_penalty = 0;
  // logit + bias; each id at most once. [-100, 100] each
  std::vector<TokenBias> logit_bias;
  // With the position in the output all that the uniform number of a draw depends on.
  uint64_t seed = 0;
  // Empty: no logprobs. Otherwise that of the drawn token and of this many first-ranked ones; all
  // are of the model's distribution: temperature 1 and nothing of the above. [0, kTopLogprobsMax]
  std::optional<int32_t> num_top_logprobs;
};

// An error in one line names the field, its value and its range.
base::Status check(const SamplingParams& params, int64_t vocab_size);

// Whether a draw reads the request's TokenHistory; if not, it may stay empty.
bool uses_history(const SamplingParams& params);

}  // namespace ingot::engine
