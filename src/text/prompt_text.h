#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ingot::text {

// Bytes [begin, end) of a text.
struct TextSpan {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const TextSpan&) const = default;
};

// Text for a model, and which of its bytes are data: what a user, a tool or an earlier answer said,
// as against what a chat template says itself. Control tokens are recognised outside of data only,
// so that nobody can end a turn or open another role by writing a marker into a message.
struct PromptText {
  std::string text;            // UTF-8
  std::vector<TextSpan> data;  // ascending, not empty, neither overlapping nor touching
};

}  // namespace ingot::text
