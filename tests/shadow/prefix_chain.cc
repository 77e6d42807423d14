#include "shadow/prefix_chain.h"

#include <utility>

#include "base/random.h"

namespace ingot::shadow {

PrefixId empty_prefix(std::string_view salt) { return base::splitmix64(base::fnv1a64(salt)); }

PrefixId extended(PrefixId prefix, int32_t token) {
  return base::splitmix64(prefix ^ base::splitmix64(static_cast<uint64_t>(token)));
}

PrefixChain::PrefixChain(std::string_view salt, std::vector<int32_t> tokens)
    : tokens_(std::move(tokens)) {
  prefixes_.reserve(tokens_.size() + 1);
  prefixes_.push_back(empty_prefix(salt));
  for (const int32_t token : tokens_) prefixes_.push_back(extended(prefixes_.back(), token));
}

void PrefixChain::append(int32_t token) {
  prefixes_.push_back(extended(prefixes_.back(), token));
  tokens_.push_back(token);
}

}  // namespace ingot::shadow
