#pragma once

namespace ingot::cli {

// While this lives, Ctrl-C (SIGINT) is remembered and does not end the process; calls that block
// return early. Before and after, the signal does what it did.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since the last clear().
  static bool pressed();
  static void clear();
};

}  // namespace ingot::cli
