#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/result.h"

namespace ingot::base {

// One anonymous mapping that hands out aligned, zeroed pieces until it is full. Pieces are never
// freed one by one; all go with the arena. Not thread-safe.
class Arena {
 public:
  static constexpr size_t kAlignment = 64;

  // Reserves `capacity_bytes` with huge pages where the kernel gives them, spread over the memory
  // nodes as memory_placement() says. `purpose` names the memory in errors ("weights"). Errors:
  // more than the machine or its cgroup has available.
  static Result<Arena> create(uint64_t capacity_bytes, std::string_view purpose);

  // Bytes that a piece of `size_bytes` takes, padding included.
  static constexpr uint64_t padded(uint64_t size_bytes) {
    return (size_bytes + kAlignment - 1) / kAlignment * kAlignment;
  }

  Arena() = default;
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&& other) noexcept;
  ~Arena();

  // REQUIRES: the padded sizes of all pieces fit the capacity.
  std::byte* allocate(uint64_t size_bytes);

  template <typename T>
  T* allocate_array(uint64_t count) {
    CHECK(count <= capacity_bytes_ / sizeof(T), "arena is too small");
    return reinterpret_cast<T*>(allocate(count * sizeof(T)));
  }

  uint64_t capacity_bytes() const { return capacity_bytes_; }
  uint64_t used_bytes() const { return used_bytes_; }

 private:
  Arena(std::byte* data, uint64_t capacity_bytes) : data_(data), capacity_bytes_(capacity_bytes) {}

  std::byte* data_ = nullptr;
  uint64_t capacity_bytes_ = 0;
  uint64_t used_bytes_ = 0;
};

}  // namespace ingot::base
