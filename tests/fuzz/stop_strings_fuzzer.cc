// Stop strings and a text: the match is what its definition says, wherever the text is cut, and
// what is certain to stand before it does.
//
// The first byte is the size of the pieces, the second how much of the text is passed; then come
// strings, each with a line feed, an empty one, and the text.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/stop_strings.h"

namespace {

using ingot::text::StopMatch;
using ingot::text::StopStrings;

// The definition is slow.
constexpr size_t kTextBytesMax = 1024;
constexpr size_t kStringsMax = 16;

std::optional<StopMatch> first_match(std::string_view text, const std::vector<std::string>& strings,
                                     size_t num_passed) {
  for (size_t end = num_passed + 1; end <= text.size(); ++end) {
    std::optional<StopMatch> longest;
    for (size_t index = 0; index < strings.size(); ++index) {
      if (!text.substr(0, end).ends_with(strings[index])) continue;
      const size_t begin = end - strings[index].size();
      if (!longest || begin < longest->begin) longest = StopMatch{begin, end, index};
    }
    if (longest) return longest;
  }
  return std::nullopt;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const size_t piece_size = 1 + data[0] % 16;
  std::string_view rest(reinterpret_cast<const char*>(data + 2), size - 2);
  std::vector<std::string> strings;
  while (strings.size() < kStringsMax) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    if (end == 0) break;
    strings.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  const std::string_view text = rest.substr(0, kTextBytesMax);
  const size_t num_passed = std::min<size_t>(data[1], text.size());
  const std::optional<StopMatch> expected = first_match(text, strings, num_passed);

  StopStrings search(strings);
  size_t num_certain = 0;
  for (size_t at = 0; at < text.size() && !search.match(); at += piece_size) {
    const std::string_view piece = text.substr(at, piece_size);
    const size_t passed = std::min(num_passed - std::min(num_passed, at), piece.size());
    search.pass(piece.substr(0, passed));
    search.push(piece.substr(passed));
    CHECK(search.num_certain() >= num_certain);
    num_certain = search.num_certain();
    CHECK(num_certain <= at + piece.size());
    if (expected) CHECK(num_certain <= expected->begin);
  }
  CHECK(search.match() == expected);
  if (expected) CHECK(num_certain == expected->begin);
  return 0;
}
