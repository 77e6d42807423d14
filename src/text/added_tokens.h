#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/prompt_text.h"

namespace ingot::text {

// A token that is found in the text itself, before any other rule: a marker of a chat template.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      // left out of decoded text on request
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // takes the white space after it along
  bool single_word = false;  // not inside of a word
  bool normalized = false;   // looked for after all that are not, in what they left
};

// An added token in a text. `begin` and `end` include the white space that it takes along.
struct AddedTokenMatch {
  size_t begin = 0;
  size_t end = 0;
  int32_t id = 0;
};

// Finds added tokens: from the left, the longest where several begin at one place, none that
// overlaps an earlier one. Immutable.
class AddedTokenFinder {
 public:
  // REQUIRES: contents are distinct and not empty.
  explicit AddedTokenFinder(std::vector<AddedToken> tokens);

  // Matches in order. Tokens are looked for inside of each span of `allowed` (ascending, disjoint,
  // parts of the text) and do not reach over its ends. White space that a token takes along may
  // overlap the match before it; then begin < the end of that one.
  std::vector<AddedTokenMatch> find(std::string_view text, std::span<const TextSpan> allowed) const;

 private:
  const AddedToken* longest_at(std::string_view text) const;

  std::vector<AddedToken> tokens_;  // by content
  std::array<bool, 256> begins_token_{};
};

}  // namespace ingot::text
