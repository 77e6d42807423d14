#include "base/clock.h"

namespace ingot::base {

Instant SystemClock::now() const { return std::chrono::steady_clock::now(); }

Duration process_cpu_time() {
  std::timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + Duration(time.tv_nsec);
}

std::string utc_timestamp() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  const size_t length = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return std::string(text, length);
}

int64_t unix_time() {
  return std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
}

std::tm local_calendar() { return local_calendar(unix_time()); }

std::tm local_calendar(int64_t unix_time) {
  const std::time_t time = unix_time;
  std::tm parts{};
  localtime_r(&time, &parts);
  return parts;
}

}  // namespace ingot::base
