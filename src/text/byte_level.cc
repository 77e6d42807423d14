#include "text/byte_level.h"

#include <array>

#include "text/utf8.h"

namespace ingot::text {
namespace {

constexpr char32_t kFirstStandIn = 0x100;
constexpr char32_t kNumCharacters = kFirstStandIn + 68;  // 68 bytes print nothing
constexpr int16_t kNoByte = -1;

constexpr bool prints(int byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
}

constexpr std::array<char32_t, 256> kCharacterOfByte = [] {
  std::array<char32_t, 256> characters{};
  char32_t stand_in = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    characters[static_cast<size_t>(byte)] = prints(byte) ? static_cast<char32_t>(byte) : stand_in++;
  }
  return characters;
}();

constexpr std::array<int16_t, kNumCharacters> kByteOfCharacter = [] {
  std::array<int16_t, kNumCharacters> bytes{};
  bytes.fill(kNoByte);
  for (size_t byte = 0; byte < 256; ++byte) {
    bytes[kCharacterOfByte[byte]] = static_cast<int16_t>(byte);
  }
  return bytes;
}();

}  // namespace

char32_t byte_level_character(uint8_t byte) { return kCharacterOfByte[byte]; }

std::optional<std::string> byte_level_bytes(std::string_view content) {
  std::string bytes;
  bytes.reserve(content.size());
  while (!content.empty()) {
    const char32_t character = first_code_point(content);
    if (character >= kNumCharacters || kByteOfCharacter[character] == kNoByte) return {};
    bytes += static_cast<char>(kByteOfCharacter[character]);
    content.remove_prefix(first_utf8_unit(content).size_bytes);
  }
  return bytes;
}

}  // namespace ingot::text
