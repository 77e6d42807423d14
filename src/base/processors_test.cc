#include "base/processors.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/scratch_directory.h"

namespace ingot::base {
namespace {

using Numbers = std::vector<int>;
using Shares = std::vector<Numbers>;

TEST(Processors, ListsOfNumbers) {
  EXPECT_EQ(parse_number_list("0"), Numbers({0}));
  EXPECT_EQ(parse_number_list("0-3,8,10-11"), Numbers({0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_number_list("5,1"), Numbers({1, 5}));
  for (const char* text : {"", "-1", "3-1", "a", "1,,2", "1;2", "0-99999999", "1-"}) {
    EXPECT_EQ(parse_number_list(text), Numbers()) << text;
  }
}

// Two nodes of `cores_per_node` cores with two hardware threads each, numbered as servers do: all
// first threads, then all second ones.
std::vector<Processor> two_nodes(int cores_per_node) {
  std::vector<Processor> processors;
  const int cores = 2 * cores_per_node;
  for (int number = 0; number < 2 * cores; ++number) {
    const int core = number % cores;
    processors.push_back({.number = number, .core = core, .node = core / cores_per_node});
  }
  return processors;
}

TEST(Processors, DescribedByTheSystemsFiles) {
  const ScratchDirectory system;
  const auto write = [&](const std::string& name, const std::string& text) {
    const std::filesystem::path path = system / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  };
  write("node/has_cpu", "0-1");
  write("node/node0/cpulist", "0-1,4-5");
  write("node/node1/cpulist", "2-3,6-7");
  for (int number = 0; number < 8; ++number) {
    write(fmt::format("cpu/cpu{}/topology/thread_siblings_list", number),
          fmt::format("{},{}", number % 4, number % 4 + 4));
  }
  const std::vector<Processor> all =
      describe_processors(Numbers({0, 1, 2, 3, 4, 5, 6, 7}), system.path());
  EXPECT_EQ(all, two_nodes(2));
  EXPECT_EQ(count_cores(all), 4);
  // A mask that leaves some of them.
  const std::vector<Processor> some = describe_processors(Numbers({3, 6, 7}), system.path());
  EXPECT_EQ(some, (std::vector<Processor>{{3, 3, 1}, {6, 2, 1}, {7, 3, 1}}));
  EXPECT_EQ(count_cores(some), 2);
}

TEST(Processors, WithoutFilesEachIsACore) {
  const ScratchDirectory nothing;
  EXPECT_EQ(describe_processors(Numbers({2, 5}), nothing.path()),
            (std::vector<Processor>{{2, 2, 0}, {5, 5, 0}}));
}

TEST(Processors, SharesAreWholeCores) {
  EXPECT_EQ(share_processors(two_nodes(2), 4), Shares({{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(share_processors(two_nodes(2), 2), Shares({{0, 4, 1, 5}, {2, 6, 3, 7}}));
}

TEST(Processors, SharesLieWithinANode) {
  // The second of three would have cores 3, 4 and 5, of which 3 is of the other node.
  EXPECT_EQ(share_processors(two_nodes(4), 3),
            Shares({{0, 8, 1, 9, 2, 10}, {4, 12, 5, 13}, {6, 14, 7, 15}}));
}

TEST(Processors, SecondThreadsOfCoresComeLast) {
  EXPECT_EQ(share_processors(two_nodes(2), 5), Shares({{0}, {4}, {1}, {2}, {3}}));
  EXPECT_EQ(share_processors(two_nodes(2), 8), Shares({{0}, {4}, {1}, {5}, {2}, {6}, {3}, {7}}));
}

TEST(Processors, TooFewAreNotShared) {
  EXPECT_EQ(share_processors(two_nodes(2), 9), Shares());
  EXPECT_EQ(share_processors({}, 1), Shares());
}

TEST(Processors, SharesAreApartForEverySize) {
  for (const int cores_per_node : {1, 3, 8}) {
    const std::vector<Processor> processors = two_nodes(cores_per_node);
    for (int size = 1; size <= std::ssize(processors); ++size) {
      const Shares shares = share_processors(processors, size);
      ASSERT_EQ(std::ssize(shares), size);
      std::set<int> taken;
      for (const Numbers& share : shares) {
        ASSERT_FALSE(share.empty());
        for (const int number : share) ASSERT_TRUE(taken.insert(number).second) << size;
      }
    }
  }
}

TEST(Processors, ThisThreadMayRunSomewhere) {
  const Numbers allowed = allowed_processors();
  ASSERT_FALSE(allowed.empty());
  EXPECT_TRUE(std::ranges::is_sorted(allowed));
  EXPECT_GE(count_cores(describe_processors(allowed)), 1);
  const Numbers one = {allowed.back()};
  ASSERT_TRUE(confine_thread(::pthread_self(), one));
  EXPECT_EQ(allowed_processors(), one);
  ASSERT_TRUE(confine_thread(::pthread_self(), allowed));
  EXPECT_EQ(allowed_processors(), allowed);
}

}  // namespace
}  // namespace ingot::base
