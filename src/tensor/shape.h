#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

namespace ingot::tensor {

// Extents of a tensor, outermost first; rank 0 is a scalar. A plain value.
class Shape {
 public:
  static constexpr size_t kRankMax = 8;

  Shape() = default;
  // REQUIRES: at most kRankMax extents, none negative.
  Shape(std::initializer_list<int64_t> extents);
  // Nothing when the rank is too large or an extent is negative.
  static std::optional<Shape> create(std::span<const int64_t> extents);

  size_t rank() const { return rank_; }
  int64_t operator[](size_t axis) const { return extents_[axis]; }
  std::span<const int64_t> extents() const { return {extents_.data(), rank_}; }

  // Product of the extents; nothing when it does not fit 63 bits.
  std::optional<int64_t> num_elements() const;

  // "[154880, 6144]"; "[]" for a scalar.
  std::string to_string() const;

  friend bool operator==(const Shape& a, const Shape& b) = default;

 private:
  std::array<int64_t, kRankMax> extents_{};
  size_t rank_ = 0;
};

}  // namespace ingot::tensor
