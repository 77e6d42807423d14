#include "quantize/line_of_text.h"

#include <cstdint>

#include "model/config_reader.h"

namespace ingot::quantize {

bool is_line_of_text(std::string_view text) {
  uint8_t before = 0;
  for (const char c : text) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte < 0x20 || byte == 0x7F) return false;
    if (before == 0xC2 && byte < 0xA0) return false;
    before = byte;
  }
  return !text.empty();
}

std::string shown_line(std::string_view text) {
  return is_line_of_text(text) ? model::shown_string(text) : "(no line of text)";
}

}  // namespace ingot::quantize
