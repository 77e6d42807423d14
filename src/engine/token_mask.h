#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ingot::engine {

// Which ids may be drawn: a bit an id, the lowest of a word first, 1 where allowed; the layout that
// XGrammar fills. Bits past the vocabulary are 0. Padding ids, the stop ids of a request that has
// not had its min_tokens and a grammar each make one; their intersection goes to the draw.
class TokenMask {
 public:
  static constexpr size_t kWordBits = 32;
  static constexpr size_t num_words(size_t vocab_size) {
    return (vocab_size + kWordBits - 1) / kWordBits;
  }

  // Allows all. REQUIRES: vocab_size >= 0.
  explicit TokenMask(int64_t vocab_size);

  // REQUIRES: 0 <= id < vocab_size.
  void forbid(int32_t id);
  void allow(int32_t id);
  bool allows(int32_t id) const;

  // Forbids what `words` forbids. REQUIRES: words.size() is that of this mask.
  void intersect(std::span<const uint32_t> words);

  std::span<const uint32_t> words() const { return words_; }

 private:
  std::vector<uint32_t> words_;
  int64_t vocab_size_ = 0;
};

}  // namespace ingot::engine
