#include "text/vocabulary.h"

#include <algorithm>
#include <bit>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/check.h"

namespace ingot::text {
namespace {

uint32_t hash_of(std::string_view bytes) {
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace

Vocabulary::Vocabulary(std::span<const Token> tokens) {
  size_t num_bytes = 0;
  int32_t last = -1;
  for (const Token& token : tokens) {
    CHECK(token.id >= 0);
    num_bytes += token.bytes.size();
    last = std::max(last, token.id);
  }
  CHECK(num_bytes < kHole, "more than 4 GiB of tokens");
  bytes_.reserve(num_bytes);
  places_.resize(static_cast<size_t>(last + 1));
  for (const Token& token : tokens) {
    Place& place = places_[static_cast<size_t>(token.id)];
    CHECK(place.begin == kHole, "two tokens of one id");
    place = {static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(token.bytes.size())};
    bytes_ += token.bytes;
  }
  words_.resize(std::bit_ceil(2 * tokens.size() + 1));
}

std::string_view Vocabulary::bytes(int32_t id) const {
  CHECK(id >= 0 && id < size());
  if (!contains(id)) return {};
  return std::string_view(bytes_).substr(place(id).begin, place(id).length);
}

void Vocabulary::mark_word(int32_t id) {
  CHECK(contains(id));
  const uint32_t hash = hash_of(bytes(id));
  size_t at = hash & (words_.size() - 1);
  while (words_[at].id >= 0) at = (at + 1) & (words_.size() - 1);
  words_[at] = {hash, id};
}

std::optional<int32_t> Vocabulary::find_word(std::string_view word) const {
  const uint32_t hash = hash_of(word);
  for (size_t at = hash & (words_.size() - 1);; at = (at + 1) & (words_.size() - 1)) {
    const Slot& slot = words_[at];
    if (slot.id < 0) return {};
    if (slot.hash == hash && bytes(slot.id) == word) return slot.id;
  }
}

}  // namespace ingot::text
