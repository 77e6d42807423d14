#pragma once

#include <vector>

#include "engine/sampler.h"

namespace ingot::engine {

// The logprob of a token that follows, and of those that were the likeliest there.
struct TokenLogprobs {
  TokenLogprob token = {};
  std::vector<TokenLogprob> top = {};
};

}  // namespace ingot::engine
