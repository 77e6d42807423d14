#include "tensor/shape.h"

#include <array>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace ingot::tensor {
namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

TEST(Shape, IsAValue) {
  const Shape shape = {154880, 6144};
  EXPECT_EQ(shape.rank(), 2u);
  EXPECT_EQ(shape[0], 154880);
  EXPECT_EQ(shape[1], 6144);
  EXPECT_EQ(shape.extents().size(), 2u);
  EXPECT_EQ(shape, (Shape{154880, 6144}));
  EXPECT_NE(shape, (Shape{6144, 154880}));
  EXPECT_NE(shape, (Shape{154880, 6144, 1}));
  EXPECT_NE((Shape{0}), Shape{});
}

TEST(Shape, ScalarHasOneElement) {
  EXPECT_EQ(Shape{}.rank(), 0u);
  EXPECT_EQ(Shape{}.num_elements(), 1);
  EXPECT_EQ(Shape{}.to_string(), "[]");
}

TEST(Shape, PrintsLikeAnArray) {
  EXPECT_EQ((Shape{154880, 6144}).to_string(), "[154880, 6144]");
  EXPECT_EQ((Shape{7}).to_string(), "[7]");
}

TEST(Shape, CreateRefusesRankAndSign) {
  const std::array<int64_t, 9> ones = {1, 1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_TRUE(Shape::create(std::span(ones).first(8)).has_value());
  EXPECT_FALSE(Shape::create(ones).has_value());
  EXPECT_FALSE(Shape::create(std::array<int64_t, 2>{3, -1}).has_value());
  EXPECT_FALSE(Shape::create(std::array<int64_t, 1>{std::numeric_limits<int64_t>::min()}));
  EXPECT_EQ(Shape::create({}), Shape{});
}

TEST(Shape, NumElementsNeverOverflows) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  EXPECT_EQ((Shape{3, 4, 5}).num_elements(), 60);
  EXPECT_EQ((Shape{kMost}).num_elements(), kMost);
  EXPECT_EQ((Shape{kMost, 1, 1}).num_elements(), kMost);
  EXPECT_EQ((Shape{kMost, 2}).num_elements(), std::nullopt);
  EXPECT_EQ((Shape{kHuge, kHuge}).num_elements(), std::nullopt);
  EXPECT_EQ((Shape{int64_t{1} << 32, int64_t{1} << 31}).num_elements(), std::nullopt);
  EXPECT_EQ((Shape{int64_t{1} << 31, int64_t{1} << 31}).num_elements(), int64_t{1} << 62);
  EXPECT_EQ((Shape{kHuge, kHuge, 0}).num_elements(), 0);
  EXPECT_EQ((Shape{0, kHuge, kHuge}).num_elements(), 0);
}

TEST(ShapeDeathTest, LiteralMustBeAShape) {
  EXPECT_DEATH((Shape{1, -1}), "too many or negative");
  EXPECT_DEATH((Shape{1, 1, 1, 1, 1, 1, 1, 1, 1}), "too many or negative");
}

}  // namespace
}  // namespace ingot::tensor
