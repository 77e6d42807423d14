#pragma once

#include <chrono>
#include <cstdint>
#include <ctime>
#include <string>

namespace ingot::base {

using Duration = std::chrono::nanoseconds;
using Instant = std::chrono::time_point<std::chrono::steady_clock, Duration>;

// Where time comes from. Code that needs "now" takes it as an argument; only loops that own a
// thread hold a Clock. Implementations are safe to call from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Instant now() const = 0;
};

// The machine's monotonic clock.
class SystemClock final : public Clock {
 public:
  Instant now() const override;
};

// Processor time that all threads of this process have had.
Duration process_cpu_time();

// Wall time in UTC as "2026-11-30T07:11:27Z", for provenance records only.
std::string utc_timestamp();

// Seconds since 1970 in UTC, for what says when it was made.
int64_t unix_time();

// Wall time where the machine is, for what people read: now, or at a Unix time.
std::tm local_calendar();
std::tm local_calendar(int64_t unix_time);

inline double seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace ingot::base
