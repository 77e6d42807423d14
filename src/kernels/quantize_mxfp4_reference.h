#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/check.h"
#include "kernels/quantize_mxfp4.h"
#include "tensor/float16.h"
#include "tensor/mxfp4.h"

namespace ingot::kernels {

// The plain form of the rule that quantize_mxfp4.h states, one value after another.

inline constexpr int kMxfp4ExponentMax = 254;  // 255 would be NaN

// Quark's exponent for a block's largest magnitude.
inline int even_exponent(float magnitude_max) {
  const uint32_t rounded = (std::bit_cast<uint32_t>(magnitude_max) + (1u << 21)) >> 23;
  if (rounded >= 255) return kMxfp4ExponentMax;
  return std::max(static_cast<int>(rounded) - 2, 0);
}

constexpr uint8_t stored_scale_byte(int exponent) {
  return static_cast<uint8_t>(std::max(exponent, 1));
}

// The code of the magnitude that is nearest to `scaled` >= 0. A midpoint belongs to the even code.
inline uint8_t nearest_e2m1_magnitude(float scaled) {
  return static_cast<uint8_t>((scaled > 0.25f) + (scaled >= 0.75f) + (scaled > 1.25f) +
                              (scaled >= 1.75f) + (scaled > 2.5f) + (scaled >= 3.5f) +
                              (scaled > 5.0f));
}

// Lanes as quantize_mxfp4.h orders them.
struct EightLanes {
  float lanes[8] = {};

  void add(int64_t k, float value) { lanes[k % 8] += value; }
  float sum() const {
    float halves[4];
    for (int l = 0; l < 4; ++l) halves[l] = lanes[l] + lanes[l + 4];
    return (halves[0] + halves[2]) + (halves[1] + halves[3]);
  }
};

// One block rounded under one exponent. Sums are in units of `scale` squared.
struct RoundedMxfp4Block {
  int exponent = 0;
  float scale = 0;  // 2^(exponent - 127)
  uint8_t codes[tensor::kMxfp4BlockValues] = {};
  uint64_t num_clipped = 0;
  float sum_squares = 0;
  float sum_squared_errors = 0;
  float error_max = 0;  // in units of `scale`

  double in_squares(float sum) const { return sum * static_cast<double>(scale) * scale; }
};

inline RoundedMxfp4Block round_mxfp4_block(const float* values, int exponent) {
  RoundedMxfp4Block block;
  block.exponent = exponent;
  block.scale = tensor::e8m0_to_f32(static_cast<uint8_t>(exponent));
  const float inverse = tensor::e8m0_to_f32(static_cast<uint8_t>(254 - exponent));
  const float stored_over_used = stored_scale_byte(exponent) == exponent ? 1 : 2;
  EightLanes squares;
  EightLanes squared_errors;
  for (int64_t k = 0; k < tensor::kMxfp4BlockValues; ++k) {
    const float scaled = std::abs(values[k]) * inverse;
    const uint8_t code = nearest_e2m1_magnitude(scaled);
    block.codes[k] = code != 0 && values[k] < 0 ? code | 8 : code;
    block.num_clipped += scaled > 6;
    const float error = tensor::kE2M1Values[code] * stored_over_used - scaled;
    squares.add(k, scaled * scaled);
    squared_errors.add(k, error * error);
    block.error_max = std::max(block.error_max, std::abs(error));
  }
  block.sum_squares = squares.sum();
  block.sum_squared_errors = squared_errors.sum();
  return block;
}

template <ScaleSearch kSearch>
RoundedMxfp4Block quantize_mxfp4_block(const float* values, float magnitude_max) {
  const int even = even_exponent(magnitude_max);
  RoundedMxfp4Block best = round_mxfp4_block(values, even);
  if constexpr (kSearch == ScaleSearch::kSquaredError) {
    for (const int exponent : {even - 1, even + 1}) {
      if (exponent < 0 || exponent > kMxfp4ExponentMax) continue;
      const RoundedMxfp4Block other = round_mxfp4_block(values, exponent);
      if (other.in_squares(other.sum_squared_errors) < best.in_squares(best.sum_squared_errors)) {
        best = other;
      }
    }
  }
  return best;
}

inline void add_block(const RoundedMxfp4Block& block, float magnitude_max,
                      RoundingStatistics& statistics) {
  ++statistics.num_blocks;
  statistics.num_zero_blocks += magnitude_max == 0;
  statistics.num_clipped += block.num_clipped;
  statistics.sum_squares += block.in_squares(block.sum_squares);
  statistics.sum_squared_errors += block.in_squares(block.sum_squared_errors);
  statistics.error_max = std::max(statistics.error_max, block.error_max * block.scale);
  statistics.magnitude_max = std::max(statistics.magnitude_max, magnitude_max);
  ++statistics.scale_bytes[stored_scale_byte(block.exponent)];
}

// T is float, tensor::Float16 or tensor::BFloat16.
template <typename T, ScaleSearch kSearch>
bool quantize_mxfp4_reference(const QuantizeMxfp4Args& args) {
  CHECK(args.cols > 0 && args.cols % 2 == 0);
  const T* source = static_cast<const T*>(args.values);
  uint8_t* codes = args.codes;
  uint8_t* scales = args.scales;
  RoundingStatistics statistics;
  for (int64_t row = 0; row < args.rows; ++row) {
    for (int64_t first = 0; first < args.cols; first += tensor::kMxfp4BlockValues) {
      const int64_t count = std::min(args.cols - first, tensor::kMxfp4BlockValues);
      float values[tensor::kMxfp4BlockValues] = {};
      float magnitude_max = 0;
      for (int64_t k = 0; k < count; ++k) {
        values[k] = tensor::to_f32(*source++);
        if (!std::isfinite(values[k])) return false;
        magnitude_max = std::max(magnitude_max, std::abs(values[k]));
      }
      const RoundedMxfp4Block block = quantize_mxfp4_block<kSearch>(values, magnitude_max);
      for (int64_t k = 0; k < count; k += 2) {
        *codes++ = static_cast<uint8_t>(block.codes[k] | block.codes[k + 1] << 4);
      }
      *scales++ = stored_scale_byte(block.exponent);
      add_block(block, magnitude_max, statistics);
    }
  }
  statistics.num_values = static_cast<uint64_t>(args.rows * args.cols);
  args.statistics->add(statistics);
  return true;
}

}  // namespace ingot::kernels
