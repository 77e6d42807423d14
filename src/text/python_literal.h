#pragma once

#include <optional>
#include <string_view>

#include "base/json.h"

namespace ingot::text {

// Reads a literal as Python writes it: True, False, None, numbers, strings in single or double
// quotes, lists, tuples (which become arrays) and dicts with strings as keys. Models that saw much
// Python put such things where JSON belongs. Nothing for any other text.
std::optional<base::json::value> parse_python_literal(std::string_view text);

}  // namespace ingot::text
