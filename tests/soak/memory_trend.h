#pragma once

#include <cstdint>
#include <vector>

namespace ingot::soak {

// Resident memory at moments at which nothing runs, and whether it grows.
class MemoryTrend {
 public:
  void add(uint64_t resident_bytes) { samples_.push_back(resident_bytes); }

  uint64_t last_bytes() const { return samples_.empty() ? 0 : samples_.back(); }

  // From the median of the first third of the samples to that of the last third: a single moment
  // says little, since an allocator keeps what it may need again. 0: there are fewer than nine.
  int64_t growth_bytes() const;

 private:
  std::vector<uint64_t> samples_;
};

}  // namespace ingot::soak
