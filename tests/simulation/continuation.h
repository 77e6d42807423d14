#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "shadow/prefix_chain.h"

namespace ingot::simulation {

// Tokens are 0 to kVocabulary - 1: few, so that stop tokens come and prompts collide.
inline constexpr int32_t kVocabulary = 48;

// What the simulated model continues a prefix with: a pure function, so that every way of batching
// has to give the same output.
int32_t next_token(uint64_t seed, shadow::PrefixId prefix);

// A prompt and all that the model would ever say after it, found out as far as somebody asks.
class Continuation {
 public:
  Continuation(uint64_t seed, std::string_view salt, std::vector<int32_t> prompt);

  int32_t token(int32_t position);

 private:
  uint64_t seed_;
  shadow::PrefixChain chain_;
};

}  // namespace ingot::simulation
