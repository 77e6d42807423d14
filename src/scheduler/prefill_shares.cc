#include "scheduler/prefill_shares.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ingot::scheduler {
namespace {

// Gives it up to `rows` more; says how many it took.
int32_t give(PrefillShare& share, int32_t rows) {
  const int32_t total = std::min({share.rows + rows, share.rows_left, share.max_rows});
  if (total < std::min(share.min_rows, share.rows_left)) return 0;
  const int32_t taken = total - share.rows;
  share.rows = total;
  return taken;
}

}  // namespace

void share_prefill(std::span<PrefillShare> shares, int32_t budget) {
  if (shares.empty()) return;
  const int32_t first_half = std::max((budget + 1) / 2, shares.front().min_rows);
  budget -= give(shares.front(), std::min(first_half, budget));
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {},
                           [&](size_t i) { return shares[i].rows_left - shares[i].rows; });
  for (const size_t i : order) budget -= give(shares[i], budget);
}

}  // namespace ingot::scheduler
