#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace ingot::base {

// "1.50 GB", "340 MB", "12 B": three digits, in powers of 1000 as model pages and disks have them.
std::string format_bytes(uint64_t bytes);

// A line on stderr that shows how far long work is: share done, rate, time left. Silent when stderr
// is not a terminal and during the first two seconds. One thread calls it.
class Progress {
 public:
  enum class Unit { kBytes, kTokens, kTensors, kRequests };

  // `already_done` of the total was done before, and says nothing of the rate.
  Progress(std::string_view label, uint64_t total, Unit unit, const Clock& clock,
           uint64_t already_done = 0);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // `note` is shown after the rate. REQUIRES: done never falls.
  void update(uint64_t done, std::string_view note = "");

  struct State {
    uint64_t done = 0;
    uint64_t total = 0;
    uint64_t already_done = 0;
    Duration elapsed{};
  };
  // The text shown for a state, without terminal control; public so that it can be tested.
  static std::string line(std::string_view label, const State& state, Unit unit,
                          std::string_view note = "");

 private:
  const std::string label_;
  const uint64_t total_;
  const Unit unit_;
  const Clock& clock_;
  const uint64_t already_done_;
  const Instant start_;
  Instant last_shown_;
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace ingot::base
