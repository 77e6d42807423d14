#include "soak/memory_trend.h"

#include <algorithm>
#include <cstddef>

namespace ingot::soak {
namespace {

constexpr size_t kSamplesMin = 9;

int64_t median(std::vector<uint64_t> samples) {
  const auto middle = samples.begin() + static_cast<ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return static_cast<int64_t>(*middle);
}

}  // namespace

int64_t MemoryTrend::growth_bytes() const {
  if (samples_.size() < kSamplesMin) return 0;
  const auto third = static_cast<ptrdiff_t>(samples_.size() / 3);
  return median({samples_.end() - third, samples_.end()}) -
         median({samples_.begin(), samples_.begin() + third});
}

}  // namespace ingot::soak
