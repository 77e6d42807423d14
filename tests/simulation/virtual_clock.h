#pragma once

#include "base/check.h"
#include "base/clock.h"

namespace ingot::simulation {

// Time that passes when the simulation says so. One thread uses it.
class VirtualClock final : public base::Clock {
 public:
  base::Instant now() const override { return now_; }

  void advance(base::Duration duration) {
    CHECK(duration.count() >= 0);
    now_ += duration;
  }

  // Later than now, or nothing happens.
  void advance_to(base::Instant instant) {
    if (instant > now_) now_ = instant;
  }

 private:
  base::Instant now_ = {};
};

}  // namespace ingot::simulation
