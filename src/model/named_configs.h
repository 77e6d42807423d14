#pragma once

#include <string>
#include <string_view>

namespace ingot::model {

// A config that comes with the program, by name; null when there is none of that name.
const char* named_config(std::string_view name);
// "tiny, glm-5.2, ...", for error lines.
std::string named_configs();

}  // namespace ingot::model
