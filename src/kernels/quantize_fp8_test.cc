#include "kernels/quantize_fp8.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/dequantize.h"
#include "kernels/source_fixture.h"
#include "tensor/fp8.h"

namespace ingot::kernels {
namespace {

using tensor::DType;

struct Quantized {
  bool finite = false;
  std::vector<uint8_t> codes;
  std::vector<float> scales;
  double sum_squares = 0;
  double sum_squared_errors = 0;
  float error_max = 0;
};

Quantized run(const QuantizeFp8Variant& variant, const SourceValues& source, int64_t cols) {
  Quantized result;
  result.codes.resize(static_cast<size_t>(source.count()), 0xEE);
  result.scales.resize(static_cast<size_t>(source.count() / cols), -1);
  result.finite = variant.run({.values = source.data(),
                               .rows = source.count() / cols,
                               .cols = cols,
                               .codes = result.codes.data(),
                               .scales = result.scales.data(),
                               .sum_squares = &result.sum_squares,
                               .sum_squared_errors = &result.sum_squared_errors,
                               .error_max = &result.error_max});
  return result;
}

// Of a type, those that this processor can run, the reference last.
std::vector<QuantizeFp8Variant> variants_of(DType dtype) {
  std::vector<QuantizeFp8Variant> variants;
  for (const QuantizeFp8Variant& variant : quantize_fp8_variants()) {
    if (variant.kind.dtype == dtype && variant.target <= detect_target()) {
      variants.push_back(variant);
    }
  }
  return variants;
}

uint64_t bits_of(double value) { return std::bit_cast<uint64_t>(value); }

class QuantizeFp8Data : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, QuantizeFp8Data,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& type) { return std::string(tensor::name(type.param)); });

TEST_P(QuantizeFp8Data, VariantsAgreeToTheLastBit) {
  for (const SourceKind kind : kSourceKinds) {
    for (const int64_t cols : {1, 7, 8, 9, 64, 100, 1000}) {
      const SourceValues source(GetParam(), kind, 8000 / cols * cols);
      const auto variants = variants_of(GetParam());
      const Quantized plain = run(variants.back(), source, cols);
      EXPECT_TRUE(plain.finite);
      for (const QuantizeFp8Variant& variant : variants) {
        SCOPED_TRACE(std::string(variant.name) + ", " + name(kind) + ", " + std::to_string(cols));
        const Quantized result = run(variant, source, cols);
        EXPECT_TRUE(result.finite);
        EXPECT_TRUE(result.codes == plain.codes);
        EXPECT_EQ(result.scales, plain.scales);
        EXPECT_EQ(bits_of(result.sum_squares), bits_of(plain.sum_squares));
        EXPECT_EQ(bits_of(result.sum_squared_errors), bits_of(plain.sum_squared_errors));
        EXPECT_EQ(result.error_max, plain.error_max);
      }
    }
  }
}

// `value` as the type holds it, by its constructor in the tests' own data.
float as_stored(DType dtype, float value) { return SourceValues(dtype, {value}).value(0); }

// The rule of quantize_fp8.h, with the nearest of all codes found by trying them.
TEST_P(QuantizeFp8Data, FollowsTheRule) {
  for (const SourceKind kind : kSourceKinds) {
    const int64_t cols = 60;
    const SourceValues source(GetParam(), kind, 10 * cols);
    for (const QuantizeFp8Variant& variant : variants_of(GetParam())) {
      const Quantized result = run(variant, source, cols);
      for (int64_t i = 0; i < source.count(); ++i) {
        const int64_t row = i / cols;
        float magnitude_max = 0;
        for (int64_t k = 0; k < cols; ++k) {
          magnitude_max = std::max(magnitude_max, std::abs(source.value(row * cols + k)));
        }
        const float scale = magnitude_max / 448 == 0 ? 0x1p-23f : magnitude_max / 448;
        ASSERT_EQ(result.scales[static_cast<size_t>(row)], scale);
        const float narrow = as_stored(GetParam(), scale);
        const float quotient =
            as_stored(GetParam(), source.value(i) / (narrow == 0 ? scale : narrow));
        const uint8_t code = result.codes[static_cast<size_t>(i)];
        ASSERT_FALSE(tensor::is_nan(tensor::Float8E4M3{code}));
        ASSERT_EQ(code >= 128, std::signbit(source.value(i))) << i;
        const auto distance = [&](int magnitude) {
          const auto bits = static_cast<uint8_t>(magnitude);
          return std::abs(static_cast<double>(tensor::to_f32(tensor::Float8E4M3{bits})) -
                          std::abs(quotient));
        };
        const int magnitude = code & 0x7F;
        for (int other = 0; other < 0x7F; ++other) {
          ASSERT_GE(distance(other), distance(magnitude)) << variant.name << " " << quotient;
          if (other != magnitude && distance(other) == distance(magnitude)) {
            ASSERT_EQ(magnitude % 2, 0) << variant.name << " " << quotient;
          }
        }
      }
    }
  }
}

TEST_P(QuantizeFp8Data, SumsAreThoseOfWhatReadsBack) {
  for (const SourceKind kind : kSourceKinds) {
    const SourceValues source(GetParam(), kind, 30 * 61);
    for (const QuantizeFp8Variant& variant : variants_of(GetParam())) {
      SCOPED_TRACE(std::string(variant.name) + ", " + name(kind));
      const Quantized result = run(variant, source, 61);
      const Weight weight{.format = WeightFormat::kFp8Channel,
                          .rows = 30,
                          .cols = 61,
                          .data = result.codes.data(),
                          .scales = result.scales.data()};
      std::vector<float> decoded(result.codes.size());
      dequantize(weight, decoded.data());
      double sum_squares = 0, sum_squared_errors = 0, error_max = 0;
      for (size_t i = 0; i < decoded.size(); ++i) {
        const double value = source.value(static_cast<int64_t>(i));
        const double error = decoded[i] - value;
        sum_squares += value * value;
        sum_squared_errors += error * error;
        error_max = std::max(error_max, std::abs(error));
      }
      // Read back in f32, products are rounded; next to the largest value that is little.
      const double slack = 1e-4 * sum_squared_errors + 1e-12 * sum_squares + 1e-88;
      EXPECT_NEAR(result.sum_squares, sum_squares, 1e-12 * sum_squares);
      EXPECT_NEAR(result.sum_squared_errors, sum_squared_errors, slack);
      EXPECT_NEAR(result.error_max, error_max, 1e-4 * error_max + 1e-44);
    }
  }
}

TEST_P(QuantizeFp8Data, FindsWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const QuantizeFp8Variant& variant : variants_of(GetParam())) {
      for (int64_t at = 0; at < 3 * 21; ++at) {
        SourceValues source(GetParam(), SourceKind::kNormal, 3 * 21);
        ASSERT_TRUE(run(variant, source, 21).finite);
        source.set(at, bad);
        ASSERT_FALSE(run(variant, source, 21).finite) << variant.name << " at " << at;
      }
    }
  }
}

TEST(QuantizeFp8, EdgesByHand) {
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const QuantizeFp8Variant& variant : variants_of(dtype)) {
      SCOPED_TRACE(variant.name);
      const Quantized zero = run(variant, SourceValues(dtype, {0.0f, -0.0f}), 2);
      EXPECT_EQ(zero.scales[0], 0x1p-23f);
      EXPECT_EQ(zero.codes, (std::vector<uint8_t>{0, 0x80}));
      EXPECT_EQ(zero.sum_squared_errors, 0);

      const Quantized plain = run(variant, SourceValues(dtype, {448, -1, 17, 19, 0x1p-10f}), 5);
      EXPECT_EQ(plain.scales[0], 1);
      // 17 and 19 are midpoints; so is half of the least value, 2^-9.
      EXPECT_EQ(plain.codes, (std::vector<uint8_t>{0x7E, 0xB8, 0x58, 0x5A, 0x00}));
    }
  }
}

// A row whose scale f16 cannot hold; Quark divides by zero and writes NaN.
TEST(QuantizeFp8, TinyRowsOfF16StayNumbers) {
  for (const QuantizeFp8Variant& variant : variants_of(DType::kF16)) {
    const Quantized result = run(variant, SourceValues(DType::kF16, {0x1p-18f, 0, -0x1p-19f}), 3);
    EXPECT_EQ(result.codes, (std::vector<uint8_t>{0x7E, 0, 0xF6})) << variant.name;
  }
}

}  // namespace
}  // namespace ingot::kernels
