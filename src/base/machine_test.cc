#include "base/machine.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

namespace ingot::base {
namespace {

TEST(Machine, ProcessorNameIsOneLine) {
  const std::string name = processor_name();
  EXPECT_FALSE(name.empty());
  EXPECT_FALSE(name.contains('\n'));
  EXPECT_NE(name.front(), ' ');
}

TEST(Machine, ThreadsFollowTheAffinityMask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  const int threads = usable_threads();
  EXPECT_GE(threads, 1);
  EXPECT_LE(threads, CPU_COUNT(&before));

  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &before)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_threads(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(usable_threads(), threads);
}

TEST(Machine, ThreadsAreWholeCoresOfTheQuota) {
  EXPECT_EQ(usable_threads(8, std::nullopt), 8);
  EXPECT_EQ(usable_threads(8, 16.0), 8);
  EXPECT_EQ(usable_threads(8, 3.99), 3) << "a fourth would be stopped nearly always";
  EXPECT_EQ(usable_threads(8, 3.0), 3);
  EXPECT_EQ(usable_threads(8, 0.5), 1);
  EXPECT_EQ(usable_threads(1, std::nullopt), 1);
}

TEST(Machine, AvailableMemoryIsPartOfTheMachine) {
  const auto pages = static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES));
  const auto page_bytes = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  EXPECT_GT(available_memory_bytes(), uint64_t{16} << 20);
  EXPECT_LE(available_memory_bytes(), pages * page_bytes);
}

}  // namespace
}  // namespace ingot::base
