#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::text {

// What the first bytes of a text are, read as UTF-8.
enum class Utf8Kind : uint8_t {
  kCharacter,   // one character
  kInvalid,     // the start of no character, or a character that breaks off
  kIncomplete,  // the text ends inside of a character
};

struct Utf8Unit {
  Utf8Kind kind = Utf8Kind::kInvalid;
  // Of the character, of its part that is there, or of the maximal subpart of an ill-formed
  // sequence (Unicode 3.9): what a lossy decoder replaces by one U+FFFD.
  uint8_t size_bytes = 0;
};

// REQUIRES: bytes is not empty.
Utf8Unit first_utf8_unit(std::string_view bytes);

// The code point of the first character.
// REQUIRES: bytes begins with a whole, valid character.
char32_t first_code_point(std::string_view bytes);

// Where the first character begins that is not valid UTF-8; none when all are.
std::optional<size_t> find_invalid_utf8(std::string_view text);

// REQUIRES: a code point that is no surrogate.
void append_utf8(std::string& text, char32_t code_point);

// U+FFFD, which stands for bytes that are no UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";

}  // namespace ingot::text
