#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ingot::engine {

// How often each token stands in one request's prompt and output, for the penalties. Not their
// order, and nothing that the vocabulary's size enters: up to 28 bytes a distinct token, so that
// hundreds of requests may have one. Owned by the request; one thread at a time.
class TokenHistory {
 public:
  struct Count {
    int32_t id = 0;
    int32_t in_prompt = 0;
    int32_t in_output = 0;
  };

  TokenHistory() = default;
  // REQUIRES: ids >= 0, here and below.
  explicit TokenHistory(std::span<const int32_t> prompt);

  // Amortised O(1).
  void append_output(int32_t id) { ++count_of(id).in_output; }

  // Each token that occurs, once, in order of its first occurrence.
  std::span<const Count> counts() const { return counts_; }

  size_t memory_bytes() const;

 private:
  Count& count_of(int32_t id);
  size_t slot_of(int32_t id) const;
  void grow();

  std::vector<Count> counts_;
  // Open addressing: indices into counts_, or kEmpty; a power of two of them, at most 3/4 in use.
  std::vector<int32_t> slots_;
};

}  // namespace ingot::engine
