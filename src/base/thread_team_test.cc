#include "base/thread_team.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <ctime>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/processors.h"

namespace ingot::base {
namespace {

// One count for all, several groups of members, and a last group that is not full.
constexpr int kSizes[] = {1, 2, 3, 4, 8, 16, 17, 21};

TEST(ThreadTeam, EveryMemberWorksOnceARun) {
  for (const int size : kSizes) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> calls(static_cast<size_t>(size));
    const int num_runs = size <= 4 ? 500 : 30;
    for (int run = 0; run < num_runs; ++run) {
      // Not atomic: run() itself must order these.
      team.run([&](int member) { ++calls[static_cast<size_t>(member)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(size), num_runs));
  }
}

TEST(ThreadTeam, BarrierShowsWhatOthersWrote) {
  for (const int size : kSizes) {
    ThreadTeam team(size);
    std::vector<int64_t> values(static_cast<size_t>(size));
    std::atomic<int> wrong{0};
    const int num_rounds = size <= 4 ? 1000 : 30;
    team.run([&](int member) {
      for (int round = 1; round <= num_rounds; ++round) {
        values[static_cast<size_t>(member)] = round * 10 + member;
        team.barrier(member);
        int64_t expected = 0;
        for (int other = 0; other < size; ++other) expected += round * 10 + other;
        if (std::accumulate(values.begin(), values.end(), int64_t{0}) != expected) ++wrong;
        team.barrier(member);
      }
    });
    EXPECT_EQ(wrong.load(), 0);
  }
}

TEST(ThreadTeam, WaitsForASlowMember) {
  ThreadTeam team(3);
  std::atomic<uint64_t> sink{0};
  int before = 0;
  int after = 0;
  team.run([&](int member) {
    if (member == 1) {
      // Long enough that the others stop spinning and sleep.
      for (uint64_t i = 0; i < 20'000'000; ++i) sink.store(i, std::memory_order_relaxed);
      before = 1;
    }
    team.barrier(member);
    if (member == 2) after = before;
  });
  EXPECT_EQ(after, 1);
}

TEST(ThreadTeam, ManyTeamsComeAndGo) {
  std::atomic<int> calls{0};
  for (int i = 0; i < 200; ++i) {
    ThreadTeam team(1 + i % 4);
    if (i % 3 != 0) team.run([&](int) { ++calls; });  // some are destroyed without a run
  }
  int expected = 0;
  for (int i = 0; i < 200; ++i) expected += i % 3 != 0 ? 1 + i % 4 : 0;
  EXPECT_EQ(calls.load(), expected);
}

TEST(ThreadTeam, MembersShareOutASum) {
  constexpr int64_t kCount = 100'003;
  for (const int size : kSizes) {
    ThreadTeam team(size);
    std::vector<int> touched(kCount);
    team.run([&](int member) {
      const IndexRange share = share_of(kCount, member, team.size(), 16);
      for (int64_t i = share.begin; i < share.end; ++i) ++touched[static_cast<size_t>(i)];
    });
    EXPECT_EQ(touched, std::vector<int>(kCount, 1));
  }
}

TEST(ThreadTeam, CreateGivesATeamThatRuns) {
  const auto team = ThreadTeam::create(3);
  ASSERT_TRUE(team.has_value()) << team.error().message;
  std::atomic<int> members{0};
  (*team)->run([&](int) { ++members; });
  EXPECT_EQ(members.load(), 3);
}

// Processor time of the calling thread, or of the whole process.
int64_t processor_time_ns(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// A fraction of the time waited, and many times the time for which a member spins.
constexpr int64_t kLittleTimeNs = 10'000'000;

void wait_50_ms() {
  const timespec time{.tv_sec = 0, .tv_nsec = 50'000'000};
  ::nanosleep(&time, nullptr);
}

TEST(ThreadTeam, WaitingForALateMemberCostsLittle) {
  for (const int size : {2, 3, 8}) {
    ThreadTeam team(size);
    const ThreadTeam::Seat seat(team);
    std::vector<int64_t> spent_ns(static_cast<size_t>(size));
    team.run([&](int member) {
      team.barrier(member);
      const int64_t before = processor_time_ns(CLOCK_THREAD_CPUTIME_ID);
      if (member == 1) wait_50_ms();
      team.barrier(member);
      spent_ns[static_cast<size_t>(member)] = processor_time_ns(CLOCK_THREAD_CPUTIME_ID) - before;
    });
    EXPECT_LT(*std::ranges::max_element(spent_ns), kLittleTimeNs) << size;
  }
}

TEST(ThreadTeam, AnIdleTeamCostsNothing) {
  ThreadTeam team(8);
  team.run([](int) {});
  wait_50_ms();  // until all of them sleep
  const int64_t before = processor_time_ns(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < 3; ++i) wait_50_ms();
  EXPECT_LT(processor_time_ns(CLOCK_PROCESS_CPUTIME_ID) - before, kLittleTimeNs);
}

// Members that sleep before each barrier in turn, so that waiting spins here and sleeps there.
TEST(ThreadTeam, MembersMayFallAsleepAtAnyBarrier) {
  for (const int size : {2, 3, 8}) {
    ThreadTeam team(size);
    constexpr int kRounds = 60;
    std::vector<int> rounds(static_cast<size_t>(size));
    std::atomic<int> wrong{0};
    team.run([&](int member) {
      for (int round = 0; round < kRounds; ++round) {
        if (round % (2 * size) == member) {
          const timespec time{.tv_sec = 0, .tv_nsec = 100'000 + round * 1'000};
          ::nanosleep(&time, nullptr);
        }
        rounds[static_cast<size_t>(member)] = round;
        team.barrier(member);
        for (const int other : rounds) wrong += other != round ? 1 : 0;
        team.barrier(member);
      }
    });
    EXPECT_EQ(wrong.load(), 0) << size;
  }
}

std::vector<std::vector<int>> processors_of_members(ThreadTeam& team) {
  std::vector<std::vector<int>> processors(static_cast<size_t>(team.size()));
  team.run([&](int member) { processors[static_cast<size_t>(member)] = allowed_processors(); });
  return processors;
}

TEST(ThreadTeam, MembersHaveProcessorsOfTheirOwn) {
  const std::vector<int> allowed = allowed_processors();
  const int size = static_cast<int>(std::min<size_t>(allowed.size(), 5));
  if (size < 2) GTEST_SKIP() << "one processor";
  ThreadTeam team(size);
  ASSERT_EQ(team.placement(), ThreadTeam::Placement::kOwnProcessors);
  std::set<int> taken;
  std::vector<std::vector<int>> processors;
  {
    const ThreadTeam::Seat seat(team);
    processors = processors_of_members(team);
  }
  for (int member = 0; member < size; ++member) {
    const std::vector<int>& own = processors[static_cast<size_t>(member)];
    ASSERT_FALSE(own.empty());
    for (const Processor& processor : describe_processors(own)) {
      EXPECT_EQ(processor.node, team.node_of(member));
    }
    for (const int number : own) {
      EXPECT_TRUE(std::ranges::binary_search(allowed, number));
      EXPECT_TRUE(taken.insert(number).second) << "two members may run on " << number;
    }
  }
  EXPECT_EQ(allowed_processors(), allowed) << "the seat is given up";
  EXPECT_TRUE(team.placement_line().contains("of its own")) << team.placement_line();
}

TEST(ThreadTeam, ACrowdedTeamIsLeftToTheSystem) {
  const std::vector<int> allowed = allowed_processors();
  ThreadTeam team(static_cast<int>(allowed.size()) + 1);
  EXPECT_EQ(team.placement(), ThreadTeam::Placement::kCrowded);
  for (const std::vector<int>& own : processors_of_members(team)) EXPECT_EQ(own, allowed);
  EXPECT_TRUE(team.placement_line().contains("wait for each other")) << team.placement_line();
}

TEST(ThreadTeam, ASeatLastsFromRunToRun) {
  const std::vector<int> allowed = allowed_processors();
  if (allowed.size() < 2) GTEST_SKIP() << "one processor";
  ThreadTeam team(2);
  EXPECT_EQ(processors_of_members(team).front(), allowed) << "run() does not confine who calls it";
  {
    const ThreadTeam::Seat seat(team);
    const std::vector<int> own = allowed_processors();
    EXPECT_LT(own.size(), allowed.size());
    EXPECT_EQ(processors_of_members(team).front(), own);
    EXPECT_EQ(processors_of_members(team).front(), own);
    EXPECT_EQ(allowed_processors(), own);
  }
  EXPECT_EQ(allowed_processors(), allowed);
}

TEST(ThreadTeam, SeatsThatCannotBeHadChangeNothing) {
  const std::vector<int> allowed = allowed_processors();
  for (const int size : {1, static_cast<int>(allowed.size()) + 1}) {
    ThreadTeam team(size);
    const ThreadTeam::Seat seat(team);
    EXPECT_EQ(allowed_processors(), allowed);
    EXPECT_EQ(team.node_of(0), 0);
    EXPECT_EQ(processors_of_members(team).front(), allowed);
  }
}

}  // namespace
}  // namespace ingot::base
