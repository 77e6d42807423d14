#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ingot::text {

// Byte-level vocabularies write each byte as one printable character (the alphabet of GPT-2):
// itself where Latin-1 prints something, else U+0100 and up in the order of the bytes. So a space
// is "Ġ" and a newline "Ċ".

// The bytes that a token's content writes. None when a character is not of the alphabet, as in
// control tokens that were put into the vocabulary as they are.
// REQUIRES: content is UTF-8.
std::optional<std::string> byte_level_bytes(std::string_view content);

// The character that writes a byte.
char32_t byte_level_character(uint8_t byte);

}  // namespace ingot::text
