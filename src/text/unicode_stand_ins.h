#pragma once

#include <optional>
#include <span>

namespace ingot::text {

// Characters [first, last] that PCRE2 puts into another class than Hugging Face's tokenizers do,
// and a character of the same size in UTF-8 that PCRE2 has in the right class.
struct StandIn {
  char32_t first = 0;
  char32_t last = 0;
  char32_t stand_in = 0;
};

// Ascending, disjoint.
std::span<const StandIn> stand_ins();

std::optional<char32_t> stand_in_of(char32_t character);

}  // namespace ingot::text
