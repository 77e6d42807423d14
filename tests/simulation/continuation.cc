#include "simulation/continuation.h"

#include <utility>

#include "base/random.h"

namespace ingot::simulation {

PrefixId empty_prefix(std::string_view salt) { return base::splitmix64(base::fnv1a64(salt)); }

PrefixId extended(PrefixId prefix, int32_t token) {
  return base::splitmix64(prefix ^ base::splitmix64(static_cast<uint64_t>(token)));
}

int32_t next_token(uint64_t seed, PrefixId prefix) {
  return static_cast<int32_t>(base::splitmix64(seed ^ prefix) % kVocabulary);
}

Continuation::Continuation(uint64_t seed, std::string_view salt, std::vector<int32_t> prompt)
    : seed_(seed), tokens_(std::move(prompt)) {
  prefixes_.reserve(tokens_.size() + 1);
  prefixes_.push_back(empty_prefix(salt));
  for (const int32_t token : tokens_) prefixes_.push_back(extended(prefixes_.back(), token));
}

int32_t Continuation::token(int32_t position) {
  extend_to(position);
  return tokens_[static_cast<size_t>(position)];
}

PrefixId Continuation::prefix(int32_t position) {
  extend_to(position);
  return prefixes_[static_cast<size_t>(position) + 1];
}

void Continuation::extend_to(int32_t position) {
  while (static_cast<int64_t>(tokens_.size()) <= position) {
    tokens_.push_back(next_token(seed_, prefixes_.back()));
    prefixes_.push_back(extended(prefixes_.back(), tokens_.back()));
  }
}

}  // namespace ingot::simulation
