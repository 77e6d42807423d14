#include "kernels/attend_division.h"

#include <algorithm>

#include "base/check.h"

namespace ingot::kernels {
namespace {

// Work is counted in (key, head) pairs. Reading a head's part of kv_b takes about as long as
// multiplying it with so many rows; where a tile has fewer, reading is what takes the time.
constexpr int64_t kRowsPerReading = 8;

int64_t num_selected(const MlaAttendArgs& args, int64_t row) {
  return std::min(args.rows.num_keys(row), args.selection.topk);
}

// Keys that take as long as multiplying a row with a head's part of kv_b.
int64_t keys_per_projection(const MlaAttendArgs& args) {
  return (args.nope_dim + args.value_dim) * args.latent_dim / (2 * args.latent_dim + args.rope_dim);
}

int64_t tile_cost(const MlaAttendArgs& args, int64_t begin, int64_t end) {
  int64_t keys = 0;
  for (int64_t row = begin; row < end; ++row) keys += num_selected(args, row);
  return keys + std::max(end - begin, kRowsPerReading) * keys_per_projection(args);
}

// The cost of the costliest set.
int64_t set_cost(const MlaAttendArgs& args, const AttendDivision& division) {
  int64_t costliest = 0;
  for (int64_t set = 0; set < division.sets; ++set) {
    int64_t cost = 0;
    for (int64_t tile = 0; tile < division.num_tiles(args.rows.count); ++tile) {
      if (!division.owns(static_cast<int>(set), tile)) continue;
      const int64_t begin = tile * division.tile_rows;
      cost += tile_cost(args, begin, std::min(begin + division.tile_rows, args.rows.count));
    }
    costliest = std::max(costliest, cost);
  }
  return costliest;
}

}  // namespace

base::IndexRange AttendDivision::heads(int member, int64_t num_heads) const {
  if (member >= groups * sets) return {};
  return base::share_of(num_heads, static_cast<int>(member / sets), static_cast<int>(groups));
}

bool AttendDivision::owns(int member, int64_t tile) const {
  const int64_t turn = tile % (2 * sets);
  return member % sets == (turn < sets ? turn : 2 * sets - 1 - turn);
}

AttendDivision divide_attention(const MlaAttendArgs& args, int team_size, double head_overhead) {
  CHECK(team_size > 0 && args.heads > 0);
  AttendDivision best;
  double best_cost = 0;
  for (int64_t size = args.heads; size > 0; --size) {
    AttendDivision division{.groups = (args.heads + size - 1) / size};
    if (division.groups > team_size) break;
    if (size < args.heads && division.groups == best.groups) continue;
    const int64_t rows = std::max<int64_t>(args.rows.count, 1);
    division.sets = std::min(team_size / division.groups, rows);
    division.tile_rows = std::min((rows + division.sets - 1) / division.sets, kAttendTileRows);
    const double cost =
        (static_cast<double>(size) + head_overhead) * static_cast<double>(set_cost(args, division));
    if (size == args.heads || cost < best_cost) {
      best = division;
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace ingot::kernels
