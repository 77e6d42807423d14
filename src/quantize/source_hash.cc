#include "quantize/source_hash.h"

#include <fmt/format.h>

#include "base/check.h"

namespace ingot::quantize {

SourceHash::SourceHash() : state_(XXH3_createState(), &XXH3_freeState) {
  CHECK(state_ != nullptr);
  XXH3_128bits_reset(state_.get());
}

void SourceHash::update(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_.get(), bytes.data(), bytes.size());
}

std::string SourceHash::hex() const {
  const XXH128_hash_t digest = XXH3_128bits_digest(state_.get());
  return fmt::format("{:016x}{:016x}", digest.high64, digest.low64);
}

}  // namespace ingot::quantize
