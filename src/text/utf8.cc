#include "text/utf8.h"

#include <cstring>

#include "base/check.h"

namespace ingot::text {
namespace {

constexpr uint64_t kHighBits = 0x8080808080808080ULL;

// The bytes that may follow a lead byte, and how many do; a size of 0 for bytes that lead nothing.
struct Lead {
  uint8_t size_bytes;
  uint8_t second_min;
  uint8_t second_max;
};

Lead lead_of(uint8_t byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte < 0xF0) {
    const uint8_t min = byte == 0xE0 ? 0xA0 : 0x80;  // no overlong forms
    const uint8_t max = byte == 0xED ? 0x9F : 0xBF;  // no surrogates
    return {3, min, max};
  }
  if (byte > 0xF4) return {0, 0, 0};
  const uint8_t min = byte == 0xF0 ? 0x90 : 0x80;
  const uint8_t max = byte == 0xF4 ? 0x8F : 0xBF;  // nothing above U+10FFFF
  return {4, min, max};
}

}  // namespace

Utf8Unit first_utf8_unit(std::string_view bytes) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const Lead lead = lead_of(at(0));
  if (lead.size_bytes == 0) return {Utf8Kind::kInvalid, 1};
  uint8_t min = lead.second_min;
  uint8_t max = lead.second_max;
  for (uint8_t i = 1; i < lead.size_bytes; ++i) {
    if (i == bytes.size()) return {Utf8Kind::kIncomplete, i};
    if (at(i) < min || at(i) > max) return {Utf8Kind::kInvalid, i};
    min = 0x80;
    max = 0xBF;
  }
  return {Utf8Kind::kCharacter, lead.size_bytes};
}

char32_t first_code_point(std::string_view bytes) {
  const auto low_bits = [&](size_t i) { return static_cast<char32_t>(bytes[i] & 0x3F); };
  const auto lead = static_cast<uint8_t>(bytes[0]);
  if (lead < 0x80) return lead;
  if (lead < 0xE0) return (lead & 0x1FU) << 6 | low_bits(1);
  if (lead < 0xF0) return (lead & 0x0FU) << 12 | low_bits(1) << 6 | low_bits(2);
  return (lead & 0x07U) << 18 | low_bits(1) << 12 | low_bits(2) << 6 | low_bits(3);
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof(eight) <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof(eight));
      if ((eight & kHighBits) == 0) {
        at += sizeof(eight);
        continue;
      }
    }
    const Utf8Unit unit = first_utf8_unit(text.substr(at));
    if (unit.kind != Utf8Kind::kCharacter) return at;
    at += unit.size_bytes;
  }
  return {};
}

void append_utf8(std::string& text, char32_t code_point) {
  CHECK(code_point < 0xD800 || (code_point > 0xDFFF && code_point <= 0x10FFFF));
  const auto follow = [&](int shift) {
    text += static_cast<char>(0x80 | (code_point >> shift & 0x3F));
  };
  if (code_point < 0x80) {
    text += static_cast<char>(code_point);
  } else if (code_point < 0x800) {
    text += static_cast<char>(0xC0 | code_point >> 6);
    follow(0);
  } else if (code_point < 0x10000) {
    text += static_cast<char>(0xE0 | code_point >> 12);
    follow(6);
    follow(0);
  } else {
    text += static_cast<char>(0xF0 | code_point >> 18);
    follow(12);
    follow(6);
    follow(0);
  }
}

}  // namespace ingot::text
