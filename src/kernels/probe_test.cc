#include "kernels/probe.h"

#include <atomic>
#include <chrono>
#include <set>

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

using namespace std::chrono_literals;

// Goes on by a step at every look, so that a slice is a known number of pieces.
class TickingClock final : public base::Clock {
 public:
  explicit TickingClock(base::Duration step) : step_(step) {}
  base::Instant now() const override { return base::Instant(ticks_.fetch_add(1) * step_); }

 private:
  base::Duration step_;
  mutable std::atomic<int64_t> ticks_ = 0;
};

TEST(Probe, EveryMacProbeOfThisProcessorGivesARate) {
  base::ThreadTeam team(2);
  const base::SystemClock clock;
  const auto bench = ProbeBench::create(team, clock, 64 << 20).value();
  int probes = 0;
  for (const MacProbe& probe : mac_probes()) {
    if (probe.target > detect_target() || !probe.runs_here()) continue;
    ++probes;
    for (const int members : {1, 2}) {
      EXPECT_GT(bench->macs_per_second(probe, members, 1ms), 0) << probe.name;
    }
  }
  EXPECT_GE(probes, 2);
}

TEST(Probe, EveryReadProbeOfThisProcessorGivesARate) {
  base::ThreadTeam team(2);
  const base::SystemClock clock;
  const auto bench = ProbeBench::create(team, clock, 64 << 20).value();
  EXPECT_EQ(bench->read_bytes_per_member(), 8u << 20) << "a quarter of what is available";
  for (const ReadProbe& probe : read_probes()) {
    if (probe.target > detect_target()) continue;
    for (const int members : {1, 2}) {
      EXPECT_GT(bench->read_bytes_per_second(probe, members, 1ms), 0) << probe.name;
    }
  }
}

// With a clock that moves 1 ms at every look, a slice of 10 ms on one thread is ten pieces between
// eleven looks.
TEST(Probe, CountsWhatAMemberDidInItsOwnTime) {
  base::ThreadTeam team(2);
  const TickingClock clock(1ms);
  const auto bench = ProbeBench::create(team, clock, 64 << 20).value();
  EXPECT_DOUBLE_EQ(bench->read_bytes_per_second(read_probes().back(), 1, 10ms), 1048576 / 1e-3);
  const MacProbe& plain = *find_mac_probe(Arithmetic::kF32, Target::kReference);
  EXPECT_DOUBLE_EQ(bench->macs_per_second(plain, 1, 10ms),
                   4096 * static_cast<double>(plain.macs_per_round) / 1e-3);
}

TEST(Probe, TheFastestOfALevelIsFound) {
  EXPECT_EQ(find_mac_probe(Arithmetic::kF32, Target::kReference)->name, "plain_f32");
  EXPECT_EQ(find_mac_probe(Arithmetic::kInt8, Target::kReference)->name, "plain_int8");
  EXPECT_EQ(find_mac_probe(Arithmetic::kBF16, Target::kReference), nullptr);
  EXPECT_EQ(find_read_probe(Target::kReference).name, "read_plain");
#if defined(__x86_64__)
  EXPECT_EQ(find_mac_probe(Arithmetic::kF32, Target::kAvx2)->name, "fma_f32_avx2");
  EXPECT_EQ(find_mac_probe(Arithmetic::kInt8, Target::kAvx2)->name, "maddubs_avx2");
  EXPECT_EQ(find_mac_probe(Arithmetic::kBF16, Target::kAvx2), nullptr);
  EXPECT_EQ(find_mac_probe(Arithmetic::kInt8, Target::kAvx512)->name, "vpdpbusd_avx512");
  EXPECT_EQ(find_read_probe(Target::kAvx512).name, "read_avx2");
#endif
  std::set<std::string_view> names;
  for (const MacProbe& probe : mac_probes()) EXPECT_TRUE(names.insert(probe.name).second);
}

TEST(Probe, TooLittleMemoryIsAnError) {
  base::ThreadTeam team(2);
  const base::SystemClock clock;
  const auto bench = ProbeBench::create(team, clock, 7 << 20);
  ASSERT_FALSE(bench.has_value());
  EXPECT_EQ(bench.error().message,
            "a bandwidth probe needs 8 MiB of memory, and 7 MiB are available");
}

}  // namespace
}  // namespace ingot::kernels
