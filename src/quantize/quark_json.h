#pragma once

#include <string>

#include "base/json.h"

namespace ingot::quantize {

// JSON as Quark writes it, so that files can be compared byte for byte: that of Python's json.dump
// with indent=4 and ensure_ascii=False. Keys in their order, no newline at the end, a double with
// its point or exponent ("1e-05", "10000.0") where an integer has none.
// REQUIRES: every number is finite.
std::string quark_json(const base::json::value& value);

}  // namespace ingot::quantize
