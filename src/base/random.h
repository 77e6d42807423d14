#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::base {

// Counter-based randomness: every value is a pure function of (key, counter), so that a stream can
// be entered anywhere, by any thread, and gives the same values on every machine.

// The finalizer of SplitMix64 (Steele, Lea, Flood 2014), a bijection of 64-bit words.
constexpr uint64_t splitmix64(uint64_t state) {
  state += 0x9E3779B97F4A7C15ULL;
  state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9ULL;
  state = (state ^ (state >> 27)) * 0x94D049BB133111EBULL;
  return state ^ (state >> 31);
}

// FNV-1a with 64 bits, to derive a stream's key from a name.
constexpr uint64_t fnv1a64(std::string_view bytes) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char byte : bytes) {
    hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

// One random stream: value(i) is the i-th of its 2^64 words.
struct RandomStream {
  uint64_t key = 0;

  constexpr uint64_t word(uint64_t counter) const {
    return splitmix64(key + counter * 0x9E3779B97F4A7C15ULL);
  }

  // Uniform in [0, 1) with 53 bits.
  constexpr double uniform(uint64_t counter) const {
    return static_cast<double>(word(counter) >> 11) * 0x1.0p-53;
  }

  // Close to standard normal: four 16-bit fields of one word summed (Irwin-Hall), centred and
  // divided by the sum's standard deviation. Exactly reproducible, since it needs no libm.
  constexpr double normal(uint64_t counter) const {
    const uint64_t bits = word(counter);
    const uint64_t sum =
        (bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48);
    return (static_cast<double>(sum) - 131070.0) / 37837.0;
  }
};

constexpr RandomStream random_stream(uint64_t seed, std::string_view name) {
  return {splitmix64(seed) ^ fnv1a64(name)};
}

}  // namespace ingot::base
