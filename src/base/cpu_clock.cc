#include "base/cpu_clock.h"

namespace ingot::base {

Instant ThreadCpuClock::now() const {
  std::timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return Instant(std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec));
}

}  // namespace ingot::base
