#pragma once

#include <string_view>

namespace ingot::base {

// One line each to stderr, "ingot: text" or "ingot: warning: text". Safe from any thread. Results
// go to stdout and errors that end a command are printed by cli/, so neither passes here.
void log_info(std::string_view text);
void log_warning(std::string_view text);

}  // namespace ingot::base
