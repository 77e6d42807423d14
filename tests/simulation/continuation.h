#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ingot::simulation {

// Tokens are 0 to kVocabulary - 1: few, so that stop tokens come and prompts collide.
inline constexpr int32_t kVocabulary = 48;

// Which tokens stand before and at a position, and under which salt, in 64 bits. Chained, so that
// prefixes of different salts differ everywhere, whatever their tokens.
using PrefixId = uint64_t;
PrefixId empty_prefix(std::string_view salt);
PrefixId extended(PrefixId prefix, int32_t token);

// What the simulated model continues a prefix with: a pure function, so that every way of batching
// has to give the same output.
int32_t next_token(uint64_t seed, PrefixId prefix);

// A prompt and all that the model would ever say after it, found out as far as somebody asks.
class Continuation {
 public:
  Continuation(uint64_t seed, std::string_view salt, std::vector<int32_t> prompt);

  int32_t token(int32_t position);
  // Of the tokens up to `position`, this one included; -1: of none.
  PrefixId prefix(int32_t position);

 private:
  void extend_to(int32_t position);

  uint64_t seed_;
  std::vector<int32_t> tokens_;
  std::vector<PrefixId> prefixes_;  // [tokens_.size() + 1], the first one of no tokens
};

}  // namespace ingot::simulation
