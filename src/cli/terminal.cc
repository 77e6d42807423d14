#include "cli/terminal.h"

#include <cstdio>

#include <unistd.h>

namespace ingot::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

bool stdout_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::string terminal_safe(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool control = (byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F;
    // U+0080 to U+009F, some of which begin sequences like ESC [ does.
    const bool control_of_two_bytes =
        byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0;
    if (control_of_two_bytes) ++i;
    if (control || control_of_two_bytes) {
      safe += kReplacement;
    } else {
      safe += text[i];
    }
  }
  return safe;
}

void write_out(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace ingot::cli
