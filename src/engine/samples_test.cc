#include "engine/samples.h"

#include <cmath>
#include <initializer_list>

#include <gtest/gtest.h>

namespace ingot::engine {
namespace {

Samples samples_of(std::initializer_list<double> values) {
  Samples samples;
  for (const double value : values) samples.add(value);
  return samples;
}

TEST(Samples, QuantilesLieBetweenNeighbours) {
  EXPECT_EQ(samples_of({3, 1, 2}).median(), 2);
  EXPECT_EQ(samples_of({4, 1, 2, 3}).median(), 2.5);
  const Samples five = samples_of({50, 10, 40, 20, 30});
  EXPECT_EQ(five.quantile(0), 10);
  EXPECT_EQ(five.quantile(1), 50);
  EXPECT_DOUBLE_EQ(five.quantile(0.9), 46);
  EXPECT_EQ(samples_of({7}).quantile(0.9), 7);
  EXPECT_EQ(Samples().median(), 0);
}

TEST(Samples, StandardDeviationIsOfASample) {
  EXPECT_DOUBLE_EQ(samples_of({2, 4, 4, 4, 5, 5, 7, 9}).standard_deviation(), std::sqrt(32.0 / 7));
  EXPECT_EQ(samples_of({3}).standard_deviation(), 0);
  EXPECT_EQ(Samples().standard_deviation(), 0);
}

TEST(Samples, RatesKeepTheOrder) {
  const Samples rates = samples_of({2, 4, 1}).rates(8);
  ASSERT_EQ(rates.values().size(), 3u);
  EXPECT_EQ(rates.values()[0], 4);
  EXPECT_EQ(rates.values()[1], 2);
  EXPECT_EQ(rates.values()[2], 8);
}

}  // namespace
}  // namespace ingot::engine
