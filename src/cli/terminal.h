#pragma once

#include <string>
#include <string_view>

namespace ingot::cli {

bool stdout_is_terminal();

// What a model or a stranger wrote, fit to be shown: on a terminal control characters other than
// newline and tab become U+FFFD, so that no text moves the cursor or changes colours. REQUIRES:
// UTF-8.
std::string terminal_safe(std::string_view text);

// Writes to standard output at once. Errors end the program later, when it is flushed.
void write_out(std::string_view text);

}  // namespace ingot::cli
