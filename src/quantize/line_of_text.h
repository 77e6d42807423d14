#pragma once

#include <string>
#include <string_view>

namespace ingot::quantize {

// Whether a text may be shown as it is: not empty, and no character that moves a terminal's cursor
// or changes its state, which are those up to U+001F and from U+007F to U+009F.
// REQUIRES: UTF-8.
bool is_line_of_text(std::string_view text);

// A text in quotes for an error, or that it is none.
std::string shown_line(std::string_view text);

}  // namespace ingot::quantize
