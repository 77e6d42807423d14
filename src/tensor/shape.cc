#include "tensor/shape.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/check.h"

namespace ingot::tensor {

Shape::Shape(std::initializer_list<int64_t> extents) {
  const std::optional<Shape> shape = create({extents.begin(), extents.size()});
  CHECK(shape.has_value(), "shape with too many or negative extents");
  *this = *shape;
}

std::optional<Shape> Shape::create(std::span<const int64_t> extents) {
  if (extents.size() > kRankMax) return std::nullopt;
  if (std::ranges::any_of(extents, [](int64_t extent) { return extent < 0; })) return std::nullopt;
  Shape shape;
  std::ranges::copy(extents, shape.extents_.begin());
  shape.rank_ = extents.size();
  return shape;
}

std::optional<int64_t> Shape::num_elements() const {
  // First, because [2^40, 2^40, 0] has no elements and a product that overflows on the way.
  if (std::ranges::find(extents(), 0) != extents().end()) return 0;
  int64_t product = 1;
  for (const int64_t extent : extents()) {
    if (__builtin_mul_overflow(product, extent, &product)) return std::nullopt;
  }
  return product;
}

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(extents(), ", ")); }

}  // namespace ingot::tensor
