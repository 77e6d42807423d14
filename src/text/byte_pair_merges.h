#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace ingot::text {

// Two tokens that become one. Of the pairs in a word the one whose rule stands first is merged.
struct MergeRule {
  int32_t left = 0;
  int32_t right = 0;
  int32_t merged = 0;
};

// Byte-pair encoding of words: a word's bytes become tokens, which are merged by rank, the leftmost
// first where ranks are equal, until no rule fits. Immutable; a word of n bytes takes O(n log n).
class BytePairMerges {
 public:
  // Memory that encode() reuses from word to word. One thread at a time.
  class Workspace;

  // A pair's last rule holds. A byte whose token is negative must not come up in a word.
  BytePairMerges(std::span<const MergeRule> rules, const std::array<int32_t, 256>& byte_tokens);

  // Appends the tokens of a word.
  // REQUIRES: every byte has a token; word.size() < 2^31.
  void encode(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const;

 private:
  struct Rule {
    uint64_t pair = kNoPair;
    uint32_t rank = 0;
    int32_t merged = 0;
  };
  static constexpr uint64_t kNoPair = UINT64_MAX;
  static constexpr size_t kShortWordMax = 48;

  const Rule* find(int32_t left, int32_t right) const;
  void encode_short(std::string_view word, std::vector<int32_t>& ids) const;
  void encode_long(std::string_view word, Workspace& workspace, std::vector<int32_t>& ids) const;
  const Rule* rule_at(uint32_t left, const Workspace& workspace) const;

  std::array<int32_t, 256> byte_tokens_;
  std::vector<Rule> rules_;  // hash table with linear probing: a power of two, at most half full
};

class BytePairMerges::Workspace {
 private:
  friend class BytePairMerges;

  static constexpr uint32_t kNone = UINT32_MAX;
  // A token of the word, in a list in the order of the word.
  struct Symbol {
    int32_t token = 0;
    uint32_t previous = kNone;
    uint32_t next = kNone;
  };
  std::vector<Symbol> symbols;
  // A heap of merges that were possible when they were put in: rank << 32 | index of the left
  // symbol.
  std::vector<uint64_t> queue;
};

}  // namespace ingot::text
