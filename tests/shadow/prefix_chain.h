#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ingot::shadow {

// Which tokens stand before and at a position, and under which salt, in 64 bits. Chained, so that
// prefixes of different salts differ everywhere, whatever their tokens.
using PrefixId = uint64_t;
PrefixId empty_prefix(std::string_view salt);
PrefixId extended(PrefixId prefix, int32_t token);

// Tokens, and the prefix that ends at each of them.
class PrefixChain {
 public:
  PrefixChain(std::string_view salt, std::vector<int32_t> tokens);

  void append(int32_t token);
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }

  // REQUIRES, of both: position < size().
  int32_t token(int32_t position) const { return tokens_.at(static_cast<size_t>(position)); }
  // Of the tokens up to `position`, this one included; -1: of none.
  PrefixId prefix(int32_t position) const {
    return prefixes_.at(static_cast<size_t>(position) + 1);
  }
  PrefixId last_prefix() const { return prefixes_.back(); }

 private:
  std::vector<int32_t> tokens_;
  std::vector<PrefixId> prefixes_;  // [tokens_.size() + 1], the first one of no tokens
};

}  // namespace ingot::shadow
