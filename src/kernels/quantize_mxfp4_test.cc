#include "kernels/quantize_mxfp4.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "kernels/dequantize.h"
#include "kernels/source_fixture.h"
#include "tensor/mxfp4.h"
#include "tensor/safetensors.h"

namespace ingot::kernels {
namespace {

using tensor::DType;

constexpr DType kSourceTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
constexpr ScaleSearch kSearches[] = {ScaleSearch::kEven, ScaleSearch::kSquaredError};

struct Quantized {
  bool finite = false;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;
  RoundingStatistics statistics;
};

Quantized run(const QuantizeMxfp4Variant& variant, const void* values, int64_t rows, int64_t cols) {
  Quantized result;
  result.codes.resize(static_cast<size_t>(rows * (cols / 2)), 0xEE);
  result.scales.resize(static_cast<size_t>(rows * ((cols + 31) / 32)), 0xEE);
  result.finite = variant.run({.values = values,
                               .rows = rows,
                               .cols = cols,
                               .codes = result.codes.data(),
                               .scales = result.scales.data(),
                               .statistics = &result.statistics});
  return result;
}

Quantized run(const QuantizeMxfp4Variant& variant, const SourceValues& source, int64_t cols) {
  return run(variant, source.data(), source.count() / cols, cols);
}

// Of a kind, those that this processor can run, the reference last.
std::vector<QuantizeMxfp4Variant> variants_of(DType dtype, ScaleSearch search) {
  std::vector<QuantizeMxfp4Variant> variants;
  for (const QuantizeMxfp4Variant& variant : quantize_mxfp4_variants()) {
    if (variant.kind == QuantizeMxfp4Use::Kind{dtype, search} &&
        variant.target <= detect_target()) {
      variants.push_back(variant);
    }
  }
  return variants;
}

void expect_same_bits(double a, double b, std::string_view what) {
  EXPECT_EQ(std::bit_cast<uint64_t>(a), std::bit_cast<uint64_t>(b)) << what << " " << a << " " << b;
}

void expect_same(const RoundingStatistics& a, const RoundingStatistics& b) {
  EXPECT_EQ(a.num_values, b.num_values);
  EXPECT_EQ(a.num_blocks, b.num_blocks);
  EXPECT_EQ(a.num_zero_blocks, b.num_zero_blocks);
  EXPECT_EQ(a.num_clipped, b.num_clipped);
  expect_same_bits(a.sum_squares, b.sum_squares, "sum_squares");
  expect_same_bits(a.sum_squared_errors, b.sum_squared_errors, "sum_squared_errors");
  expect_same_bits(a.error_max, b.error_max, "error_max");
  expect_same_bits(a.magnitude_max, b.magnitude_max, "magnitude_max");
  EXPECT_EQ(a.scale_bytes, b.scale_bytes);
}

// What amd-quark 0.13 wrote for input.safetensors, file to file; rows.json names the rows.

struct GoldenTensor {
  DType dtype;
  int64_t rows;
  int64_t cols;
  std::vector<uint8_t> bytes;
};

GoldenTensor golden(const std::string& file, const std::string& name) {
  const std::string path = INGOT_SOURCE_DIR "/tests/golden/quantize/" + file;
  const std::string text = base::read_text_file(path, 1 << 20).value();
  const auto bytes = std::as_bytes(std::span(text));
  const auto tensors = tensor::parse_safetensors_header(bytes, bytes.size(), path).value();
  for (const tensor::TensorInfo& info : tensors) {
    if (info.name != "model.layers.3.mlp.experts." + name) continue;
    const auto* first = reinterpret_cast<const uint8_t*>(bytes.data()) + info.offset;
    return {info.dtype, info.shape[0], info.shape[1], {first, first + info.size_bytes}};
  }
  ADD_FAILURE() << name << " is not in " << path;
  return {};
}

TEST(QuantizeMxfp4, GivesTheBytesOfQuark) {
  for (const std::string expert : {"0", "1", "2"}) {
    const GoldenTensor input = golden("input.safetensors", expert + ".gate_proj.weight");
    const GoldenTensor codes = golden("output.safetensors", expert + ".gate_proj.weight");
    const GoldenTensor scales = golden("output.safetensors", expert + ".gate_proj.weight_scale");
    const auto variants = variants_of(input.dtype, ScaleSearch::kEven);
    ASSERT_FALSE(variants.empty());
    for (const QuantizeMxfp4Variant& variant : variants) {
      const Quantized result = run(variant, input.bytes.data(), input.rows, input.cols);
      EXPECT_TRUE(result.finite) << variant.name;
      EXPECT_EQ(result.codes, codes.bytes) << variant.name;
      EXPECT_EQ(result.scales, scales.bytes) << variant.name;
    }
  }
}

// Data of many kinds.

class QuantizeMxfp4Data : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(EveryType, QuantizeMxfp4Data, testing::ValuesIn(kSourceTypes),
                         [](const auto& type) { return std::string(tensor::name(type.param)); });

void expect_variants_agree(const SourceValues& source, int64_t cols, const std::string& what) {
  for (const ScaleSearch search : kSearches) {
    const auto variants = variants_of(source.dtype(), search);
    const Quantized plain = run(variants.back(), source, cols);
    EXPECT_TRUE(plain.finite);
    for (const QuantizeMxfp4Variant& variant : variants) {
      SCOPED_TRACE(what + " " + std::string(variant.name));
      const Quantized result = run(variant, source, cols);
      EXPECT_EQ(result.finite, plain.finite);
      EXPECT_TRUE(result.codes == plain.codes);
      EXPECT_TRUE(result.scales == plain.scales);
      expect_same(result.statistics, plain.statistics);
    }
  }
}

TEST_P(QuantizeMxfp4Data, VariantsAgreeToTheLastBit) {
  for (const SourceKind kind : kSourceKinds) {
    for (const int64_t cols : {2, 30, 32, 34, 62, 64, 96, 126, 224, 256, 288, 512, 1000}) {
      const SourceValues source(GetParam(), kind, 8064 / cols * cols);
      expect_variants_agree(source, cols, std::to_string(cols) + " columns, " + name(kind));
    }
  }
}

// Every finite value at every place of a block, among zeros and among values of its own size.
TEST_P(QuantizeMxfp4Data, VariantsAgreeOnEverySixteenBitValue) {
  std::vector<float> every;
  std::vector<float> alone;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value =
        GetParam() == DType::kF16 ? to_f32(tensor::Float16{half}) : to_f32(tensor::BFloat16{half});
    if (!std::isfinite(value)) continue;
    every.push_back(value);
    alone.resize(alone.size() + 32);
    alone[alone.size() - 32 + bits % 32] = value;
  }
  every.resize(every.size() / 32 * 32);
  expect_variants_agree(SourceValues(GetParam(), every), 32, "every value");
  for (const int64_t cols : {32, 256}) {
    expect_variants_agree(SourceValues(GetParam(), alone), cols, "one value a block");
  }
}

// The same sums in double, from the stored bytes.
TEST_P(QuantizeMxfp4Data, StatisticsAreThoseOfThePlainSums) {
  for (const SourceKind kind : kSourceKinds) {
    const int64_t cols = 94;
    const SourceValues source(GetParam(), kind, 94 * 64);
    for (const ScaleSearch search : kSearches) {
      for (const QuantizeMxfp4Variant& variant : variants_of(GetParam(), search)) {
        SCOPED_TRACE(std::string(variant.name) + ", " + name(kind));
        const Quantized result = run(variant, source, cols);
        double sum_squares = 0, sum_squared_errors = 0, error_max = 0, magnitude_max = 0;
        for (int64_t i = 0; i < source.count(); ++i) {
          const int64_t row = i / cols, k = i % cols;
          const int byte = result.scales[static_cast<size_t>(row * 3 + k / 32)];
          const int code = result.codes[static_cast<size_t>(i / 2)] >> (i % 2 * 4) & 15;
          ASSERT_NE(code, 8);
          const double value = source.value(i);
          const double error =
              std::ldexp(static_cast<double>(tensor::kE2M1Values[code]), byte - 127) - value;
          sum_squares += value * value;
          sum_squared_errors += error * error;
          error_max = std::max(error_max, std::abs(error));
          magnitude_max = std::max(magnitude_max, std::abs(value));
        }
        const RoundingStatistics& statistics = result.statistics;
        EXPECT_NEAR(statistics.sum_squares, sum_squares, 1e-6 * sum_squares);
        EXPECT_NEAR(statistics.sum_squared_errors, sum_squared_errors, 1e-6 * sum_squared_errors);
        EXPECT_NEAR(statistics.error_max, error_max, 1e-6 * error_max);
        EXPECT_EQ(statistics.magnitude_max, magnitude_max);
        EXPECT_EQ(statistics.num_values, static_cast<uint64_t>(source.count()));
        EXPECT_EQ(statistics.num_blocks, result.scales.size());
        for (int byte = 0; byte < 256; ++byte) {
          EXPECT_EQ(statistics.scale_bytes[static_cast<size_t>(byte)],
                    static_cast<uint64_t>(std::ranges::count(result.scales, byte)));
        }
      }
    }
  }
}

// Of a nearest code no other code may be nearer, and of two as near the even one is taken.
TEST_P(QuantizeMxfp4Data, EveryCodeIsTheNearest) {
  for (const SourceKind kind : {SourceKind::kNormal, SourceKind::kTies, SourceKind::kHeavyTails}) {
    const SourceValues source(GetParam(), kind, 6400);
    for (const QuantizeMxfp4Variant& variant : variants_of(GetParam(), ScaleSearch::kEven)) {
      const Quantized result = run(variant, source, 64);
      for (int64_t i = 0; i < source.count(); ++i) {
        const int byte = result.scales[static_cast<size_t>(i / 32)];
        const int code = result.codes[static_cast<size_t>(i / 2)] >> (i % 2 * 4) & 15;
        if (byte <= 1) continue;
        const double scaled = std::ldexp(static_cast<double>(source.value(i)), 127 - byte);
        const double distance = std::abs(tensor::kE2M1Values[code] - scaled);
        for (int other = 0; other < 16; ++other) {
          const double other_distance = std::abs(tensor::kE2M1Values[other] - scaled);
          ASSERT_GE(other_distance, distance) << variant.name << " " << scaled;
          if (other_distance == distance && other % 8 != code % 8) {
            ASSERT_EQ(code % 2, 0) << variant.name << " " << scaled;
          }
        }
      }
    }
  }
}

TEST_P(QuantizeMxfp4Data, SearchNeverHasTheLargerError) {
  for (const SourceKind kind : kSourceKinds) {
    const SourceValues source(GetParam(), kind, 32 * 256);
    for (const QuantizeMxfp4Variant& even : variants_of(GetParam(), ScaleSearch::kEven)) {
      for (const QuantizeMxfp4Variant& search :
           variants_of(GetParam(), ScaleSearch::kSquaredError)) {
        const RoundingStatistics a = run(even, source, 64).statistics;
        const RoundingStatistics b = run(search, source, 64).statistics;
        EXPECT_LE(b.sum_squared_errors, a.sum_squared_errors) << search.name << ", " << name(kind);
        if (kind == SourceKind::kNormal) {
          EXPECT_LT(b.sum_squared_errors, 0.999 * a.sum_squared_errors) << search.name;
        }
      }
    }
  }
}

TEST_P(QuantizeMxfp4Data, FindsWhatIsNotFinite) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const ScaleSearch search : kSearches) {
      for (const QuantizeMxfp4Variant& variant : variants_of(GetParam(), search)) {
        for (int64_t at = 0; at < 3 * 42; ++at) {
          SourceValues source(GetParam(), SourceKind::kNormal, 3 * 42);
          ASSERT_TRUE(run(variant, source, 42).finite);
          source.set(at, bad);
          const Quantized result = run(variant, source, 42);
          ASSERT_FALSE(result.finite) << variant.name << " at " << at;
          ASSERT_EQ(result.statistics.num_values, 0u);
        }
      }
    }
  }
}

// Quantizing what was read back changes nothing but a last rounding of the scale's choice.
TEST_P(QuantizeMxfp4Data, ReadsBackThroughDequantize) {
  const SourceValues source(GetParam(), SourceKind::kNormal, 40 * 150);
  for (const ScaleSearch search : kSearches) {
    for (const QuantizeMxfp4Variant& variant : variants_of(GetParam(), search)) {
      const Quantized result = run(variant, source, 150);
      const Weight weight{.format = WeightFormat::kMxfp4,
                          .rows = 40,
                          .cols = 150,
                          .data = result.codes.data(),
                          .scales = result.scales.data()};
      std::vector<float> decoded(40 * 150);
      dequantize(weight, decoded.data());
      double sum_squared_errors = 0;
      for (size_t i = 0; i < decoded.size(); ++i) {
        const double error = decoded[i] - source.value(static_cast<int64_t>(i));
        sum_squared_errors += error * error;
      }
      EXPECT_NEAR(result.statistics.sum_squared_errors, sum_squared_errors,
                  1e-6 * sum_squared_errors);
      EXPECT_GT(result.statistics.relative_rms_error(), 0.10);
      EXPECT_LT(result.statistics.relative_rms_error(), 0.12);
    }
  }
}

TEST(QuantizeMxfp4, WritesTheTwoCornersOfQuarkByHand) {
  for (const QuantizeMxfp4Variant& variant : variants_of(DType::kF32, ScaleSearch::kEven)) {
    const SourceValues zero(DType::kF32, std::vector<float>(32, -0.0f));
    const Quantized zeros = run(variant, zero, 32);
    EXPECT_EQ(zeros.scales, std::vector<uint8_t>{1});
    EXPECT_EQ(zeros.codes, std::vector<uint8_t>(16, 0));
    EXPECT_EQ(zeros.statistics.num_zero_blocks, 1u);
    EXPECT_EQ(zeros.statistics.relative_rms_error(), 0);

    // Codes of 2^-127 under a byte that says 2^-126.
    std::vector<float> small(32, -0x1p-126f);
    small[1] = 0x1.8p-129f;  // 0.375: 0.5
    const Quantized tiny = run(variant, SourceValues(DType::kF32, small), 32);
    EXPECT_EQ(tiny.scales, std::vector<uint8_t>{1});
    EXPECT_EQ(tiny.codes[0], 0x1C);
    EXPECT_EQ(tiny.codes[1], 0xCC);
    EXPECT_EQ(tiny.statistics.error_max, 0x1p-126f);
  }
}

TEST(RoundingStatistics, PartsAddUp) {
  RoundingStatistics sum;
  RoundingStatistics part{.num_values = 64,
                          .num_blocks = 2,
                          .num_zero_blocks = 1,
                          .num_clipped = 3,
                          .sum_squares = 8,
                          .sum_squared_errors = 2,
                          .error_max = 0.5f,
                          .magnitude_max = 4};
  part.scale_bytes[120] = 2;
  sum.add(part);
  part.error_max = 0.25f;
  part.magnitude_max = 5;
  sum.add(part);
  EXPECT_EQ(sum.num_values, 128u);
  EXPECT_EQ(sum.num_blocks, 4u);
  EXPECT_EQ(sum.num_zero_blocks, 2u);
  EXPECT_EQ(sum.num_clipped, 6u);
  EXPECT_EQ(sum.error_max, 0.5f);
  EXPECT_EQ(sum.magnitude_max, 5);
  EXPECT_EQ(sum.scale_bytes[120], 4u);
  EXPECT_EQ(sum.relative_rms_error(), 0.5);
  EXPECT_EQ(RoundingStatistics{}.relative_rms_error(), 0);
}

}  // namespace
}  // namespace ingot::kernels
