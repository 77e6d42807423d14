#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::text {

// Where a stop string stands in the text. Bytes are counted from the beginning of all text.
struct StopMatch {
  size_t begin = 0;
  size_t end = 0;
  size_t index = 0;  // in the list of strings

  bool operator==(const StopMatch&) const = default;
};

// Finds the first of several strings in text that comes in pieces: the one that is complete first;
// of those that are complete with the same byte the one that begins first; of equal ones the first
// in the list. How the text is cut changes nothing. An automaton (Aho and Corasick 1975): the time
// is linear in the strings and the text, whatever they repeat. One thread at a time.
class StopStrings {
 public:
  // REQUIRES: none is empty, and all together have less than 1 GiB. No strings: nothing is found.
  explicit StopStrings(std::span<const std::string> strings);

  // Reads on, up to a match, and gives it. REQUIRES: nothing has been found yet.
  std::optional<StopMatch> push(std::string_view piece);
  // Reads text in which nothing may be found. A string that begins in it and is complete later on
  // still will be. REQUIRES: nothing has been found yet.
  void pass(std::string_view piece);

  // How many bytes of the text so far are certain to stand before any match; after one, where it
  // begins. The rest has to be held back. In whole characters, where strings and text are UTF-8.
  size_t num_certain() const;
  const std::optional<StopMatch>& match() const { return match_; }

 private:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kRoot = 0;

  // A beginning of one or more strings.
  struct Node {
    int32_t first_child = kNone;  // the root's are in a table of their own
    int32_t next_sibling = kNone;
    int32_t fallback = kRoot;  // the longest other node that this one ends with
    int32_t match = kNone;     // the longest string that this one ends with
    int32_t size = 0;          // bytes
    int32_t open_size = 0;     // of the longest end of it that may still grow into a string
    uint8_t byte = 0;          // the last one
  };

  void insert(std::string_view string, int32_t index);
  void link();
  int32_t child(int32_t node, uint8_t byte) const;
  int32_t next(int32_t node, uint8_t byte) const;

  std::vector<Node> nodes_;
  std::array<int32_t, 256> root_children_;
  std::vector<size_t> sizes_;  // of the strings
  int32_t state_ = kRoot;      // the longest beginning of a string that the text ends with
  size_t num_read_ = 0;
  std::optional<StopMatch> match_;
};

}  // namespace ingot::text
