#include "text/normalizer.h"

#include <algorithm>
#include <array>
#include <vector>

#include <utf8proc.h>

#include "base/check.h"
#include "text/utf8.h"

namespace ingot::text {
namespace {

struct Range {
  char32_t first;
  char32_t last;
};

// Characters newer than Unicode 9 that combine, decompose or compose in utf8proc's tables; and
// U+11A7, which utf8proc 2.8 loses after a Hangul syllable.
constexpr auto kLeftAsTheyAre = std::to_array<Range>({
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},
    {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},   {0x0EBA, 0x0EBA},   {0x11A7, 0x11A7},
    {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0x32FF, 0x32FF},
    {0xA7F2, 0xA7F4},   {0xA82C, 0xA82C},   {0xAB69, 0xAB69},   {0x10781, 0x107BA},
    {0x10D24, 0x10D27}, {0x10EAB, 0x10EAC}, {0x10EFD, 0x10EFF}, {0x10F46, 0x10F50},
    {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x11839, 0x1183A}, {0x11930, 0x11943}, {0x119E0, 0x119E0}, {0x11A34, 0x11A34},
    {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D45}, {0x11D97, 0x11D97},
    {0x11F41, 0x11F42}, {0x16FF0, 0x16FF1}, {0x1E030, 0x1E06D}, {0x1E08F, 0x1E08F},
    {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}, {0x1E4EC, 0x1E4EF},
    {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9},
});

bool is_left_as_it_is(char32_t character) {
  const auto* range = std::ranges::lower_bound(kLeftAsTheyAre, character, {}, &Range::last);
  return range != kLeftAsTheyAre.end() && character >= range->first;
}

int combining_class(utf8proc_int32_t character) {
  return utf8proc_get_property(character)->combining_class;
}

// Turns the characters of `text` into their decompositions, marks in their canonical order.
// utf8proc would sort the marks itself, in quadratic time.
void decompose(std::string_view text, Normalization form,
               std::vector<utf8proc_int32_t>& characters) {
  const int compatible = form == Normalization::kNfkc ? UTF8PROC_COMPAT : 0;
  const auto options = static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | compatible);
  characters.clear();
  for (size_t at = 0; at < text.size(); at += first_utf8_unit(text.substr(at)).size_bytes) {
    const auto character = static_cast<utf8proc_int32_t>(first_code_point(text.substr(at)));
    std::array<utf8proc_int32_t, 32> parts{};  // 18 are the most there are
    int boundary = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(
        character, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()), options, &boundary);
    CHECK(count >= 0 && static_cast<size_t>(count) <= parts.size());
    characters.insert(characters.end(), parts.begin(), parts.begin() + count);
  }
  const auto is_starter = [](utf8proc_int32_t c) { return combining_class(c) == 0; };
  for (auto begin = characters.begin(); begin != characters.end();) {
    begin = std::find_if_not(begin, characters.end(), is_starter);
    const auto end = std::find_if(begin, characters.end(), is_starter);
    std::ranges::stable_sort(begin, end, {}, combining_class);
    begin = end;
  }
}

// Appends the normal form of a text that has no character that is left as it is.
void append_normalized(std::string& out, std::string_view text, Normalization form) {
  if (std::ranges::all_of(text, [](char c) { return static_cast<uint8_t>(c) < 0x80; })) {
    out += text;
    return;
  }
  std::vector<utf8proc_int32_t> characters;
  decompose(text, form, characters);
  const utf8proc_ssize_t count =
      utf8proc_normalize_utf32(characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
                               static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  CHECK(count >= 0);
  characters.resize(static_cast<size_t>(count));
  for (const utf8proc_int32_t c : characters) append_utf8(out, static_cast<char32_t>(c));
}

}  // namespace

std::string normalized(std::string_view text, Normalization form) {
  std::string out;
  out.reserve(text.size());
  // Such a character combines with nothing, so that both sides of it can be normalized alone.
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t size_bytes = first_utf8_unit(text.substr(at)).size_bytes;
    if (size_bytes > 1 && is_left_as_it_is(first_code_point(text.substr(at)))) {
      append_normalized(out, text.substr(begin, at - begin), form);
      out += text.substr(at, size_bytes);
      begin = at + size_bytes;
    }
    at += size_bytes;
  }
  append_normalized(out, text.substr(begin), form);
  return out;
}

}  // namespace ingot::text
