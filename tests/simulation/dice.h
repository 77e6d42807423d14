#pragma once

#include <cstdint>

#include "base/random.h"

namespace ingot::simulation {

// Draws one after another from a stream.
class Dice {
 public:
  explicit Dice(base::RandomStream stream) : stream_(stream) {}

  double uniform() { return stream_.uniform(counter_++); }
  bool chance(double probability) { return uniform() < probability; }

  // REQUIRES: low <= high; both can come.
  int32_t between(int32_t low, int32_t high) {
    const auto width = static_cast<uint64_t>(int64_t{high} - low + 1);
    return low + static_cast<int32_t>(stream_.word(counter_++) % width);
  }

 private:
  base::RandomStream stream_;
  uint64_t counter_ = 0;
};

}  // namespace ingot::simulation
