#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tidy/source_tree.h"

namespace ingot::tidy {

// Symbols in the output of `nm --demangle OBJECT` that the linker may merge with copies from other
// files (types W, V and u). In an object built for a wide instruction set they are a trap: the copy
// that stays may be the wide one, and the narrow code then stops on processors without it.
Findings check_weak_symbols(const std::string& object, std::string_view nm_output);

// Those of `objects` (a path a line) that were built for one instruction set.
std::vector<std::string> wide_objects(std::string_view objects);

}  // namespace ingot::tidy
