#include "tensor/mxfp4.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace ingot::tensor {
namespace {

TEST(Mxfp4, EveryCodeHasItsValue) {
  for (int code = 0; code < 16; ++code) {
    const int exponent = code >> 1 & 3;
    const int mantissa = code & 1;
    const double magnitude =
        exponent == 0 ? std::ldexp(mantissa, -1) : std::ldexp(2 + mantissa, exponent - 2);
    const double want = code >= 8 ? -magnitude : magnitude;
    EXPECT_EQ(static_cast<double>(kE2M1Values[code]), want) << code;
    EXPECT_EQ(std::signbit(kE2M1Values[code]), code >= 8) << code;
  }
}

TEST(Mxfp4, EveryScaleByteIsAPowerOfTwo) {
  for (int byte = 0; byte < 255; ++byte) {
    EXPECT_EQ(static_cast<double>(e8m0_to_f32(static_cast<uint8_t>(byte))),
              std::ldexp(1.0, byte - 127))
        << byte;
  }
  EXPECT_TRUE(std::isnan(e8m0_to_f32(255)));
}

TEST(Mxfp4, EvenIndicesAreLowNibbles) {
  std::vector<uint8_t> packed;
  for (int byte = 0; byte < 256; ++byte) packed.push_back(static_cast<uint8_t>(byte));
  for (int64_t i = 0; i < 512; ++i) {
    const auto byte = static_cast<int>(i / 2);
    EXPECT_EQ(e2m1_code(packed.data(), i), i % 2 == 0 ? byte % 16 : byte / 16) << i;
  }
}

}  // namespace
}  // namespace ingot::tensor
