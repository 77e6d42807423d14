#include "base/cpu_clock.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

// Work moves both clocks; the processes' clock counts this thread and others.
TEST(ThreadCpuClock, CountsWorkOfThisThread) {
  const ThreadCpuClock clock;
  const Instant begin = clock.now();
  const Duration process_begin = process_cpu_time();
  while (clock.now() - begin < std::chrono::milliseconds(2)) {
  }
  // The two are not read at the same moment, nor from one counter.
  EXPECT_GE(process_cpu_time() - process_begin, std::chrono::milliseconds(1));
}

TEST(ThreadCpuClock, ThatOfANewThreadBeginsAnew) {
  const ThreadCpuClock clock;
  const Instant begin = clock.now();
  while (clock.now() - begin < std::chrono::milliseconds(20)) {
  }
  Instant other{};
  std::thread([&] { other = clock.now(); }).join();
  EXPECT_LT(other, clock.now());
}

}  // namespace
}  // namespace ingot::base
