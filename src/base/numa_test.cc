#include "base/numa.h"

#include <cstddef>
#include <span>
#include <vector>

#include <gtest/gtest.h>
#include <numaif.h>
#include <sys/mman.h>

namespace ingot::base {
namespace {

using Kind = MemoryPlacement::Kind;
using Numbers = std::vector<int>;

// Two sockets of two cores, node 2 has memory alone.
const std::vector<Processor> kTwoSockets = {{0, 0, 0}, {1, 1, 0}, {2, 2, 1}, {3, 3, 1}};
const std::vector<Processor> kSecondSocket = {{2, 2, 1}, {3, 3, 1}};

TEST(Numa, SpreadsOverTheNodesThatCompute) {
  const MemoryPlacement placement =
      choose_memory_placement(kTwoSockets, {.allowed_nodes = Numbers({0, 1, 2})});
  EXPECT_EQ(placement.kind, Kind::kInterleaved);
  EXPECT_EQ(placement.nodes, Numbers({0, 1}));
  EXPECT_EQ(placement.line(), "memory spread over 2 nodes");
  EXPECT_EQ(choose_memory_placement(kTwoSockets, {}).nodes, Numbers({0, 1}));
}

TEST(Numa, OneNodeNeedsNoChoice) {
  EXPECT_EQ(choose_memory_placement(kSecondSocket, {}).kind, Kind::kOneNode);
  // Processors of two nodes, and memory of one (numactl --membind, a cpuset).
  const MemoryPlacement bound =
      choose_memory_placement(kTwoSockets, {.allowed_nodes = Numbers({1})});
  EXPECT_EQ(bound.kind, Kind::kOneNode);
  EXPECT_EQ(bound.nodes, Numbers({1}));
  // All of the memory is far away.
  EXPECT_EQ(choose_memory_placement(kSecondSocket, {.allowed_nodes = Numbers({2})}).kind,
            Kind::kOneNode);
}

TEST(Numa, LeavesAPolicyThatWasGiven) {
  EXPECT_EQ(choose_memory_placement(kTwoSockets, {.has_policy = true}).kind, Kind::kGiven);
}

TEST(Numa, SaysWhenItMayNotChoose) {
  const MemoryPlacement placement = choose_memory_placement(kTwoSockets, {.may_choose = false});
  EXPECT_EQ(placement.kind, Kind::kRefused);
  EXPECT_TRUE(placement.line().contains("numactl")) << placement.line();
  EXPECT_EQ(choose_memory_placement(kSecondSocket, {.may_choose = false}).kind, Kind::kOneNode);
}

TEST(Numa, IsDecidedOnce) {
  const Numbers allowed = allowed_processors();
  const MemoryPlacement& before = memory_placement();
  ASSERT_TRUE(confine_thread(::pthread_self(), Numbers({allowed.back()})));
  const MemoryPlacement& confined = memory_placement();
  ASSERT_TRUE(confine_thread(::pthread_self(), allowed));
  EXPECT_EQ(&before, &confined);
  EXPECT_FALSE(before.nodes.empty());
}

// On the machine that runs the tests: its own nodes, of which there may be one.
class NumaMappingTest : public ::testing::Test {
 protected:
  static constexpr size_t kPageBytes = 4096;
  static constexpr size_t kPages = 64;

  void SetUp() override {
    placement_ = memory_placement();
    if (placement_.kind == Kind::kRefused) GTEST_SKIP() << placement_.line();
    void* address = ::mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(address, MAP_FAILED);
    mapping_ = {static_cast<std::byte*>(address), kPages * kPageBytes};
  }
  void TearDown() override {
    if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
  }

  int policy() const {
    int mode = -1;
    EXPECT_EQ(::get_mempolicy(&mode, nullptr, 0, mapping_.data(), MPOL_F_ADDR), 0);
    return mode;
  }

  // Touches every page and asks where it came to lie.
  Numbers pages_by_node() {
    Numbers counts;
    for (size_t at = 0; at < mapping_.size(); at += kPageBytes) {
      mapping_[at] = std::byte{1};
      int node = -1;
      EXPECT_EQ(::get_mempolicy(&node, nullptr, 0, &mapping_[at], MPOL_F_ADDR | MPOL_F_NODE), 0);
      if (std::ssize(counts) <= node) counts.resize(static_cast<size_t>(node) + 1);
      if (node >= 0) ++counts[static_cast<size_t>(node)];
    }
    return counts;
  }

  MemoryPlacement placement_;
  std::span<std::byte> mapping_;
};

TEST_F(NumaMappingTest, InterleavesOverAllNodes) {
  const Numbers& nodes = placement_.nodes;
  const Status status = interleave_memory(mapping_, nodes);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(policy(), MPOL_INTERLEAVE);
  const Numbers counts = pages_by_node();
  for (const int node : nodes) {
    EXPECT_GE(counts.at(static_cast<size_t>(node)), static_cast<int>(kPages / nodes.size()));
  }
}

TEST_F(NumaMappingTest, PlacesOnOneNode) {
  const int node = placement_.nodes.back();
  const Status status = place_memory(mapping_, node);
  ASSERT_TRUE(status.has_value()) << status.error().message;
  EXPECT_EQ(policy(), MPOL_PREFERRED);
  EXPECT_EQ(pages_by_node().at(static_cast<size_t>(node)), static_cast<int>(kPages));
}

TEST_F(NumaMappingTest, RefusesANodeThatIsNot) {
  const Status status = place_memory(mapping_, 1000);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.contains("262144 bytes")) << status.error().message;
}

}  // namespace
}  // namespace ingot::base
