#pragma once

#include "base/clock.h"

namespace ingot::base {

// Processor time that the calling thread has had: for measuring on a machine that has other work.
// Instants of different threads have nothing to do with each other.
class ThreadCpuClock final : public Clock {
 public:
  Instant now() const override;
};

}  // namespace ingot::base
