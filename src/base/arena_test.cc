#include "base/arena.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <gtest/gtest.h>
#include <numaif.h>

#include "base/machine.h"
#include "base/numa.h"

namespace ingot::base {
namespace {

bool is_zero(const std::byte* data, size_t size) {
  return std::all_of(data, data + size, [](std::byte byte) { return byte == std::byte{0}; });
}

TEST(Arena, PiecesAreAlignedZeroedAndApart) {
  auto arena = Arena::create(64 + 128 + 64 + 64, "pieces");
  ASSERT_TRUE(arena.has_value()) << arena.error().message;
  std::byte* previous_end = nullptr;
  for (const uint64_t size : {1u, 65u, 64u, 63u}) {
    std::byte* piece = arena->allocate(size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(piece) % Arena::kAlignment, 0u);
    EXPECT_TRUE(is_zero(piece, size));
    EXPECT_TRUE(previous_end == nullptr || previous_end <= piece);
    std::fill(piece, piece + size, std::byte{0xFF});
    previous_end = piece + size;
  }
  EXPECT_EQ(arena->used_bytes(), arena->capacity_bytes());
  EXPECT_NE(arena->allocate(0), nullptr) << "nothing always fits";
}

TEST(Arena, PaddedIsWhatAPieceTakes) {
  EXPECT_EQ(Arena::padded(0), 0u);
  EXPECT_EQ(Arena::padded(1), 64u);
  EXPECT_EQ(Arena::padded(64), 64u);
  EXPECT_EQ(Arena::padded(65), 128u);
}

TEST(Arena, MovesWithItsMemory) {
  auto created = Arena::create(1024, "moving");
  ASSERT_TRUE(created.has_value());
  int* numbers = created->allocate_array<int>(4);
  numbers[3] = 7;
  Arena moved = std::move(*created);
  EXPECT_EQ(numbers[3], 7);
  EXPECT_EQ(moved.used_bytes(), 64u);
  EXPECT_EQ(created->capacity_bytes(), 0u);
  Arena assigned;
  assigned = std::move(moved);
  EXPECT_EQ(numbers[3], 7);
  EXPECT_EQ(assigned.capacity_bytes(), 1024u);
}

// Untouched memory is promised all the same: two arenas cannot have the same bytes.
TEST(Arena, CountsWhatOthersWerePromised) {
  const uint64_t most = available_memory_bytes() / 5 * 3;
  {
    const auto first = Arena::create(most, "weights");
    ASSERT_TRUE(first.has_value()) << first.error().message;
    EXPECT_FALSE(Arena::create(most, "the cache").has_value());
  }
  EXPECT_TRUE(Arena::create(most, "the cache").has_value()) << "given back with its arena";
}

TEST(Arena, RefusesMoreThanThereIs) {
  const auto arena = Arena::create(available_memory_bytes() * 2, "weights");
  ASSERT_FALSE(arena.has_value());
  EXPECT_TRUE(arena.error().message.starts_with("weights need ")) << arena.error().message;
}

TEST(Arena, LiesWhereMemoryPlacementSays) {
  const MemoryPlacement placement = memory_placement();
  const bool spread = placement.kind == MemoryPlacement::Kind::kInterleaved;
  int default_policy = 0;
  if (::get_mempolicy(&default_policy, nullptr, 0, nullptr, 0) != 0) GTEST_SKIP() << "forbidden";
  auto arena = Arena::create(1 << 20, "placed");
  ASSERT_TRUE(arena.has_value());
  int policy = -1;
  ASSERT_EQ(::get_mempolicy(&policy, nullptr, 0, arena->allocate(64), MPOL_F_ADDR), 0);
  EXPECT_EQ(policy, spread ? MPOL_INTERLEAVE : default_policy) << placement.line();
}

TEST(Arena, MayBeEmpty) {
  const auto arena = Arena::create(0, "nothing");
  ASSERT_TRUE(arena.has_value());
  EXPECT_EQ(arena->capacity_bytes(), 0u);
}

TEST(ArenaDeathTest, StopsWhenItIsFull) {
  auto arena = Arena::create(128, "small");
  ASSERT_TRUE(arena.has_value());
  arena->allocate(1);
  EXPECT_DEATH(arena->allocate(65), "arena is too small");
  EXPECT_DEATH(arena->allocate(~uint64_t{0}), "arena is too small");  // padding it wraps to 0
  EXPECT_DEATH(arena->allocate_array<uint64_t>(uint64_t{1} << 61), "arena is too small");
  EXPECT_NE(arena->allocate(64), nullptr);
}

}  // namespace
}  // namespace ingot::base
