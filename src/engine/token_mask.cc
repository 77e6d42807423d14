#include "engine/token_mask.h"

#include "base/check.h"

namespace ingot::engine {
namespace {

constexpr size_t word_of(int32_t id) { return static_cast<size_t>(id) / TokenMask::kWordBits; }
constexpr uint32_t bit_of(int32_t id) {
  return uint32_t{1} << (static_cast<size_t>(id) % TokenMask::kWordBits);
}

}  // namespace

TokenMask::TokenMask(int64_t vocab_size) : vocab_size_(vocab_size) {
  CHECK(vocab_size >= 0);
  const auto size = static_cast<size_t>(vocab_size);
  words_.assign(num_words(size), ~uint32_t{0});
  if (size % kWordBits != 0) words_.back() = (uint32_t{1} << (size % kWordBits)) - 1;
}

void TokenMask::forbid(int32_t id) {
  CHECK(id >= 0 && id < vocab_size_);
  words_[word_of(id)] &= ~bit_of(id);
}

void TokenMask::allow(int32_t id) {
  CHECK(id >= 0 && id < vocab_size_);
  words_[word_of(id)] |= bit_of(id);
}

bool TokenMask::allows(int32_t id) const {
  CHECK(id >= 0 && id < vocab_size_);
  return (words_[word_of(id)] & bit_of(id)) != 0;
}

void TokenMask::intersect(std::span<const uint32_t> words) {
  CHECK(words.size() == words_.size());
  for (size_t i = 0; i < words.size(); ++i) words_[i] &= words[i];
}

}  // namespace ingot::engine
