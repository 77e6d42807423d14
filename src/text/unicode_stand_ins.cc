#include "text/unicode_stand_ins.h"

#include <algorithm>

#include "text/unicode_stand_ins_table.h"

namespace ingot::text {

std::span<const StandIn> stand_ins() { return kStandIns; }

std::optional<char32_t> stand_in_of(char32_t character) {
  const auto* range = std::ranges::lower_bound(kStandIns, character, {}, &StandIn::last);
  if (range == std::end(kStandIns) || character < range->first) return {};
  return range->stand_in;
}

}  // namespace ingot::text
