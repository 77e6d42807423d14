#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ingot::text {

// The bytes of every token by id, and the id of a word's bytes. Immutable but for mark_word().
class Vocabulary {
 public:
  struct Token {
    int32_t id = 0;
    std::string bytes;
  };

  // REQUIRES: ids are distinct and not negative.
  explicit Vocabulary(std::span<const Token> tokens);

  // One more than the highest id.
  int32_t size() const { return static_cast<int32_t>(places_.size()); }
  // REQUIRES: 0 <= id < size().
  bool contains(int32_t id) const { return place(id).begin != kHole; }
  // Empty for an id that no token has.
  std::string_view bytes(int32_t id) const;

  // From now on find_word() gives this id for its bytes.
  // REQUIRES: contains(id); no other word has the same bytes.
  void mark_word(int32_t id);
  // The token that is this whole word. None for all but marked tokens.
  std::optional<int32_t> find_word(std::string_view bytes) const;

 private:
  static constexpr uint32_t kHole = UINT32_MAX;
  struct Place {
    uint32_t begin = kHole;
    uint32_t length = 0;
  };
  // A slot of the hash table, with linear probing. The hash decides most comparisons by itself.
  struct Slot {
    uint32_t hash = 0;
    int32_t id = -1;
  };

  const Place& place(int32_t id) const { return places_[static_cast<size_t>(id)]; }

  std::string bytes_;
  std::vector<Place> places_;
  std::vector<Slot> words_;  // a power of two, at most half full
};

}  // namespace ingot::text
