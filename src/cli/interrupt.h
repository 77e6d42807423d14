#pragma once

namespace ingot::cli {

// While this lives, Ctrl-C (SIGINT) is remembered and does not end the process. Nothing that blocks
// is cut short by it; whoever waits for input waits for descriptor() as well. Before and after, the
// signal does what it did. One at a time exists.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  // Whether Ctrl-C was pressed since the last clear().
  static bool pressed();
  static void clear();
  // Can be read from once Ctrl-C was pressed; -1 while no guard lives.
  static int descriptor();
};

}  // namespace ingot::cli
