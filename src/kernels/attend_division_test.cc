#include "kernels/attend_division.h"

#include <algorithm>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::kernels {
namespace {

constexpr int64_t kAll = std::numeric_limits<int64_t>::max();

MlaAttendArgs args_of(const std::vector<int32_t>& positions, int64_t heads, int64_t topk = kAll) {
  return {.rows = {.count = static_cast<int64_t>(positions.size()), .positions = positions.data()},
          .selection = {.topk = topk},
          .heads = heads,
          .nope_dim = 192,
          .rope_dim = 64,
          .value_dim = 256,
          .latent_dim = 512};
}

std::vector<int32_t> consecutive(int32_t first, int32_t count) {
  std::vector<int32_t> positions;
  for (int32_t i = 0; i < count; ++i) positions.push_back(first + i);
  return positions;
}

// (key, head) pairs of each member.
std::vector<int64_t> loads(const MlaAttendArgs& args, const AttendDivision& division, int team) {
  std::vector<int64_t> result;
  for (int member = 0; member < team; ++member) {
    const base::IndexRange heads = division.heads(member, args.heads);
    int64_t keys = 0;
    for (int64_t row = 0; row < args.rows.count; ++row) {
      if (division.owns(member, row / division.tile_rows)) {
        keys += std::min(args.rows.num_keys(row), args.selection.topk);
      }
    }
    result.push_back(keys * (heads.end - heads.begin));
  }
  return result;
}

TEST(AttendDivision, EveryRowAndHeadHasOneOwner) {
  for (const int32_t rows : {1, 2, 3, 16, 17, 100, 513}) {
    for (const int64_t heads : {1, 3, 20, 64}) {
      for (const int team : {1, 2, 3, 7, 16, 64}) {
        const auto positions = consecutive(0, rows);
        const MlaAttendArgs args = args_of(positions, heads);
        const AttendDivision division = divide_attention(args, team, 0.25);
        ASSERT_LE(division.groups * division.sets, team);
        ASSERT_LE(division.tile_rows, kAttendTileRows);
        std::vector<int> owners(static_cast<size_t>(division.num_tiles(rows) * heads), 0);
        for (int member = 0; member < team; ++member) {
          const base::IndexRange share = division.heads(member, heads);
          for (int64_t tile = 0; tile < division.num_tiles(rows); ++tile) {
            if (!division.owns(member, tile)) continue;
            for (int64_t head = share.begin; head < share.end; ++head) {
              ++owners[static_cast<size_t>(tile * heads + head)];
            }
          }
        }
        ASSERT_EQ(std::ranges::count(owners, 1), static_cast<int64_t>(owners.size()))
            << rows << " rows, " << heads << " heads, team of " << team;
      }
    }
  }
}

TEST(AttendDivision, OneRowIsDividedByHeads) {
  const std::vector<int32_t> positions = {32'000};
  const MlaAttendArgs args = args_of(positions, 20);
  for (const int team : {2, 4, 5, 10, 20}) {
    const AttendDivision division = divide_attention(args, team, 0.25);
    EXPECT_EQ(division.groups, team);
    EXPECT_EQ(division.heads(0, 20).end, 20 / team);
  }
}

// Few rows: each part of kv_b is read once and not by every member.
TEST(AttendDivision, ABatchOfShortRowsIsDividedByHeads) {
  const auto positions = consecutive(100, 8);
  EXPECT_EQ(divide_attention(args_of(positions, 64), 8, 0.25).groups, 8);
}

TEST(AttendDivision, APromptsRowsAreEven) {
  for (const int team : {2, 3, 4, 8, 16}) {
    for (const int32_t first : {0, 2048}) {
      const auto positions = consecutive(first, 512);
      const MlaAttendArgs args = args_of(positions, 20);
      const auto shares = loads(args, divide_attention(args, team, 0.25), team);
      const auto [least, most] = std::ranges::minmax(shares);
      EXPECT_LT(static_cast<double>(most), 1.25 * static_cast<double>(least))
          << "team of " << team << ", from " << first;
    }
  }
}

// One row has most of the keys: its heads are shared out, whatever the others are.
TEST(AttendDivision, ALongRowIsNotLeftToOneMember) {
  const std::vector<int32_t> positions = {32'000, 10, 20, 30};
  const MlaAttendArgs args = args_of(positions, 64);
  const auto shares = loads(args, divide_attention(args, 4, 0.25), 4);
  EXPECT_LT(std::ranges::max(shares), 64 * 32'000 / 3);
}

}  // namespace
}  // namespace ingot::kernels
