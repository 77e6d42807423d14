#include "simulation/continuation.h"

#include <utility>

#include "base/random.h"

namespace ingot::simulation {

int32_t next_token(uint64_t seed, shadow::PrefixId prefix) {
  return static_cast<int32_t>(base::splitmix64(seed ^ prefix) % kVocabulary);
}

Continuation::Continuation(uint64_t seed, std::string_view salt, std::vector<int32_t> prompt)
    : seed_(seed), chain_(salt, std::move(prompt)) {}

int32_t Continuation::token(int32_t position) {
  while (chain_.size() <= position) chain_.append(next_token(seed_, chain_.last_prefix()));
  return chain_.token(position);
}

}  // namespace ingot::simulation
