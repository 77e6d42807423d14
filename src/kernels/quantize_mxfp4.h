#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "kernels/variant.h"
#include "tensor/dtype.h"

namespace ingot::kernels {

// How the exponent of a block's scale is chosen. Both then round every value to the nearest code,
// ties to the even one, magnitudes beyond 6 to 6, and never store -0.
//
// kEven is the rule of AMD Quark 0.12 and 0.13 (scale_calculation_mode "even"), byte for byte.
// With the largest magnitude's f32 bits, s = (bits + 2^21) >> 23 and e = s - 2 within 0..254, but
// e = 254 where s = 255. Codes stand for multiples of 2^(e - 127). The stored byte is e, but 1
// where e is 0: so in Quark's files, and a block whose largest magnitude lies below 1.75 * 2^-125
// reads back twice as large. The highest, 254, comes of magnitudes from 1.75 * 2^127 on, which
// become 2^128 and read back as infinity in f32.
//
// kSquaredError takes of e - 1, e and e + 1, as far as they are within 0..254, the one with the
// least squared error as read back, in the sums described below. Ties go to e, then to e - 1.
enum class ScaleSearch : uint8_t {
  kEven,
  kSquaredError,
};

// What rounding to MXFP4 did to some blocks. Parts add up; a caller adds them in a fixed order, so
// that sums do not depend on the number of threads.
struct RoundingStatistics {
  uint64_t num_values = 0;
  uint64_t num_blocks = 0;
  uint64_t num_zero_blocks = 0;   // every value 0
  uint64_t num_clipped = 0;       // beyond 6 times the scale that they are rounded with
  double sum_squares = 0;         // of the values
  double sum_squared_errors = 0;  // of decoded value - value
  float error_max = 0;            // largest |decoded value - value|
  float magnitude_max = 0;        // largest |value|
  std::array<uint64_t, 256> scale_bytes = {};  // how many blocks have each e8m0 byte

  void add(const RoundingStatistics& part);
  // Root of the squared errors over that of the squares; 0 where every value is 0.
  double relative_rms_error() const;
};

// Rows [rows, cols] of the use's dtype to MXFP4: `codes` [rows, cols / 2], `scales`
// [rows, ceil(cols / 32)], as kMxfp4 of weight.h describes them. A last block may be partial.
//
// Values of all dtypes are computed with in f32. Decoded values are those of the stored bytes.
// Sums: in a block, in units of 2^(e - 127), eight f32 lanes, lane l taking k = l mod 8 ascending,
// product rounded, then sum; lanes l and l + 4 added, then l and l + 2, then the last two. Blocks
// are added in f64, in order, from zero, and the whole to `statistics`. A partial block counts as
// padded with zeros.
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

// Every variant of this build, fastest first, reference last. All give the same bytes and the same
// statistics, to the last bit.
std::span<const QuantizeMxfp4Variant> quantize_mxfp4_variants();

}  // namespace ingot::kernels
