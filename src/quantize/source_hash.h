#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <xxhash.h>

namespace ingot::quantize {

// XXH3-128 of bytes that come in pieces.
class SourceHash {
 public:
  SourceHash();
  void update(std::span<const std::byte> bytes);
  std::string hex() const;  // 32 digits

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

}  // namespace ingot::quantize
