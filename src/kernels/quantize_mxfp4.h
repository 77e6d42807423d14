#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/variant.h"
#include "tensor/dtype.h"

namespace ingot::kernels {

// How the exponent of a block's scale is chosen.
enum class ScaleSearch : uint8_t {
  kEven,          // from the largest magnitude alone, as AMD Quark's scale_calculation_mode "even"
  kSquaredError,  // the one of that exponent and its two neighbours with the least squared error
};

// What rounding to MXFP4 did to some blocks. Parts add up; a caller adds them in a fixed order, so
// that sums do not depend on the number of threads.
struct RoundingStatistics {
  uint64_t num_values = 0;
  uint64_t num_blocks = 0;
  uint64_t num_zero_blocks = 0;                // every value 0
  uint64_t num_clipped = 0;                    // values beyond 6 times their scale before rounding
  double sum_squares = 0;                      // of the values
  double sum_squared_errors = 0;               // of decoded value - value
  float error_max = 0;                         // largest |decoded value - value|
  float magnitude_max = 0;                     // largest |value|
  std::array<uint64_t, 256> scale_bytes = {};  // how many blocks have each e8m0 byte

  void add(const RoundingStatistics& part);
  // Root of the squared errors over that of the squares; 0 where every value is 0.
  double relative_rms_error() const;
};

// Rows [rows, cols] of the use's dtype to MXFP4: `codes` [rows, cols / 2], `scales`
// [rows, ceil(cols / 32)], as kMxfp4 of weight.h describes them. A last block may be partial.
struct QuantizeMxfp4Args {
  const void* values;
  int64_t rows;
  int64_t cols;
  uint8_t* codes;
  uint8_t* scales;
  RoundingStatistics* statistics;  // added to
};

struct QuantizeMxfp4Use {
  struct Kind {
    tensor::DType dtype;  // kF32, kF16 or kBF16
    ScaleSearch search;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
};

// One thread's work on some rows; any number of threads may run it on different rows.
// Returns false when a value is NaN or infinite; what was written is then meaningless.
// REQUIRES: cols is even and positive.
using QuantizeMxfp4Function = bool (*)(const QuantizeMxfp4Args& args);
using QuantizeMxfp4Variant = Variant<QuantizeMxfp4Function, QuantizeMxfp4Use>;

// Every variant of this build, fastest first, reference last. All give the same bytes.
std::span<const QuantizeMxfp4Variant> quantize_mxfp4_variants();

}  // namespace ingot::kernels
