#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "scheduler/batch.h"
#include "scheduler/request.h"

namespace ingot::simulation {

// What happened in a simulation, in its order: as a fingerprint that is equal for equal histories,
// and as lines of text if anybody wants to read them.
class Journal {
 public:
  // REQUIRES: `reader`, if there is one, takes a line without its end.
  explicit Journal(std::function<void(std::string_view)> reader = {})
      : reader_(std::move(reader)) {}

  void enter(const scheduler::Batch& batch, base::Instant now);
  void enter(const scheduler::RequestEvent& event, base::Instant now);
  // A call of the scheduler, e.g. "cancel".
  void enter(std::string_view call, scheduler::RequestId request, base::Instant now);

  uint64_t fingerprint() const { return fingerprint_; }

  // Of a single batch.
  static uint64_t fingerprint(const scheduler::Batch& batch);

 private:
  void mix(uint64_t word);

  uint64_t fingerprint_ = 0;
  std::function<void(std::string_view)> reader_;
};

}  // namespace ingot::simulation
