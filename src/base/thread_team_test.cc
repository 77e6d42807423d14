#include "base/thread_team.h"

#include <atomic>
#include <cstdint>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::base {
namespace {

void expect_cover(int64_t count, int size, int64_t grain) {
  int64_t next = 0;
  int64_t tiles_min = count;
  int64_t tiles_max = 0;
  for (int member = 0; member < size; ++member) {
    const IndexRange share = share_of(count, member, size, grain);
    ASSERT_EQ(share.begin, next) << count << " " << member << "/" << size << " by " << grain;
    ASSERT_LE(share.begin, share.end);
    ASSERT_TRUE(share.begin % grain == 0 || share.begin == count);
    const int64_t tiles = (share.end - share.begin + grain - 1) / grain;
    tiles_min = std::min(tiles_min, tiles);
    tiles_max = std::max(tiles_max, tiles);
    next = share.end;
  }
  ASSERT_EQ(next, count);
  ASSERT_LE(tiles_max - tiles_min, 1) << "nobody has two tiles more than another";
}

TEST(ShareOf, CoversEveryIndexOnce) {
  for (const int64_t count : {0, 1, 2, 3, 7, 8, 16, 31, 32, 33, 100, 257, 1024, 6144}) {
    for (int size = 1; size <= 17; ++size) {
      for (const int64_t grain : {1, 2, 3, 16, 32, 1000}) expect_cover(count, size, grain);
    }
  }
  expect_cover(int64_t{1} << 60, 192, 64);
}

TEST(ThreadTeam, EveryMemberWorksOnceARun) {
  for (int size = 1; size <= 4; ++size) {
    ThreadTeam team(size);
    EXPECT_EQ(team.size(), size);
    std::vector<int> calls(static_cast<size_t>(size));
    constexpr int kRuns = 500;
    for (int run = 0; run < kRuns; ++run) {
      // Not atomic: run() itself must order these.
      team.run([&](int member) { ++calls[static_cast<size_t>(member)]; });
    }
    EXPECT_EQ(calls, std::vector<int>(static_cast<size_t>(size), kRuns));
  }
}

TEST(ThreadTeam, BarrierShowsWhatOthersWrote) {
  constexpr int kRounds = 1000;
  for (int size = 1; size <= 4; ++size) {
    ThreadTeam team(size);
    std::vector<int64_t> values(static_cast<size_t>(size));
    std::atomic<int> wrong{0};
    team.run([&](int member) {
      for (int round = 1; round <= kRounds; ++round) {
        values[static_cast<size_t>(member)] = round * 10 + member;
        team.barrier();
        int64_t expected = 0;
        for (int other = 0; other < size; ++other) expected += round * 10 + other;
        if (std::accumulate(values.begin(), values.end(), int64_t{0}) != expected) ++wrong;
        team.barrier();
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
    team.barrier();
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
  for (int size = 1; size <= 4; ++size) {
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

}  // namespace
}  // namespace ingot::base
