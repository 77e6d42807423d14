#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

#include "base/result.h"

namespace ingot::base {

namespace json = boost::json;

// Parses one JSON document. `source` names it in errors (a path). Stricter than the library: a key
// that an object has twice is an error, since readers would silently disagree about which holds.
// A number that fits no double is one too. Errors name line and column. Nesting is limited to 32.
Result<json::value> parse_json(std::string_view text, std::string_view source);

// Two-space indented text with a final newline, keys in their order, for people and for diffs.
// A double that is not finite is written as null.
std::string pretty_json(const json::value& value);
// The same on one line without spaces, for machines.
std::string compact_json(const json::value& value);

}  // namespace ingot::base
