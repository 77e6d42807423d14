#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "tidy/source_tree.h"

namespace ingot::tidy {

// Room -> the rooms whose headers it may include, its own not counted.
using LayerTable = std::map<std::string, std::set<std::string>, std::less<>>;

// Reads the room(...) lines of src/CMakeLists.txt.
LayerTable parse_layer_table(std::string_view cmake_text);

// Includes in src/ that the table does not allow, or that do not begin with a room's name.
Findings check_layers(const SourceFile& file, const LayerTable& table);

}  // namespace ingot::tidy
