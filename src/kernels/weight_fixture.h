#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "kernels/activations.h"
#include "kernels/panels.h"
#include "kernels/weight.h"
#include "tensor/float16.h"
#include "tensor/fp8.h"

// Matrices and activations in every format, for tests: made from f32 values by plain rounding, and
// what their bytes mean worked out here once more, without the code that the kernels read with.
namespace ingot::kernels {

// Values of the eight magnitudes of e2m1.
inline constexpr float kMagnitudesE2M1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};

// A weight that owns its bytes.
class StoredMatrix {
 public:
  StoredMatrix(WeightFormat format, const std::vector<float>& values, int64_t rows, int64_t cols)
      : format_(format), rows_(rows), cols_(cols) {
    CHECK(static_cast<int64_t>(values.size()) == rows * cols);
    decoded_.resize(values.size());
    data_.resize(static_cast<size_t>(weight_data_bytes(format, rows, cols)));
    scales_.resize(static_cast<size_t>(weight_scale_bytes(format, rows, cols)));
    encode(values);
  }

  Weight weight() const {
    return {.format = format_,
            .rows = rows_,
            .cols = cols_,
            .data = data_.data(),
            .scales = scales_.empty() ? nullptr : scales_.data()};
  }
  // The same in another layout, which this owns as well.
  Weight weight(WeightLayout layout) {
    if (layout == WeightLayout::kRows) return weight();
    Weight packed{.format = format_, .layout = layout, .rows = rows_, .cols = cols_};
    packed_data_.resize(static_cast<size_t>(held_data_bytes(packed)));
    packed_scales_.resize(static_cast<size_t>(held_scale_bytes(packed)));
    pack_rows(data_.data(), 0, rows_, packed, packed_data_.data());
    pack_scales(scales_.data(), packed, packed_scales_.data());
    packed.data = packed_data_.data();
    packed.scales = packed_scales_.empty() ? nullptr : packed_scales_.data();
    return packed;
  }
  const std::vector<std::byte>& data() const { return data_; }
  const std::vector<std::byte>& scales() const { return scales_; }
  // What the bytes stand for, [rows, cols].
  const std::vector<float>& decoded() const { return decoded_; }

 private:
  void encode(const std::vector<float>& values) {
    switch (format_) {
      case WeightFormat::kF32:
        return encode_plain(values, [](float v) { return v; });
      case WeightFormat::kF16:
        return encode_plain(values, [](float v) { return tensor::to_f16(v); });
      case WeightFormat::kBF16:
        return encode_plain(values, tensor::to_bf16);
      case WeightFormat::kFp8Block:
        return encode_fp8(values, kFp8BlockSize, kFp8BlockSize);
      case WeightFormat::kFp8Channel:
        return encode_fp8(values, 1, cols_);
      case WeightFormat::kMxfp4:
        return encode_mxfp4(values);
    }
  }

  template <typename Encode>
  void encode_plain(const std::vector<float>& values, const Encode& round) {
    for (size_t i = 0; i < values.size(); ++i) {
      const auto stored = round(values[i]);
      std::memcpy(data_.data() + i * sizeof stored, &stored, sizeof stored);
      decoded_[i] = tensor::to_f32(stored);
    }
  }

  // Calls visit(row, col, index) for the part of a block of `high` rows and `wide` columns that
  // the matrix has.
  template <typename Visit>
  void for_block(int64_t row, int64_t col, int64_t high, int64_t wide, const Visit& visit) const {
    for (int64_t r = row; r < std::min(row + high, rows_); ++r) {
      for (int64_t c = col; c < std::min(col + wide, cols_); ++c) {
        visit(r, c, static_cast<size_t>(r * cols_ + c));
      }
    }
  }

  // One scale after another, row of blocks by row of blocks: the largest value becomes 448.
  void encode_fp8(const std::vector<float>& values, int64_t high, int64_t wide) {
    size_t block = 0;
    for (int64_t row = 0; row < rows_; row += high) {
      for (int64_t col = 0; col < cols_; col += wide, ++block) {
        float largest = 0;
        for_block(row, col, high, wide, [&](int64_t, int64_t, size_t i) {
          largest = std::max(largest, std::abs(values[i]));
        });
        const float scale = largest > 0 ? largest / 448 : 1;
        std::memcpy(scales_.data() + block * sizeof scale, &scale, sizeof scale);
        for_block(row, col, high, wide, [&](int64_t, int64_t, size_t i) {
          const tensor::Float8E4M3 code = tensor::to_e4m3(values[i] / scale);
          data_[i] = std::byte{code.bits};
          decoded_[i] = tensor::to_f32(code) * scale;
        });
      }
    }
  }

  void encode_mxfp4(const std::vector<float>& values) {
    size_t block = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t col = 0; col < cols_; col += 32, ++block) {
        float largest = 0;
        for_block(row, col, 1, 32, [&](int64_t, int64_t, size_t i) {
          largest = std::max(largest, std::abs(values[i]));
        });
        const int exponent = largest > 0 ? std::max(std::ilogb(largest) - 2, -127) : -127;
        scales_[block] = std::byte{static_cast<uint8_t>(exponent + 127)};
        for_block(row, col, 1, 32, [&](int64_t r, int64_t c, size_t i) {
          const uint8_t code = nearest_e2m1(std::ldexp(values[i], -exponent));
          const float magnitude = kMagnitudesE2M1[code & 7];
          decoded_[i] = std::ldexp(code >= 8 ? -magnitude : magnitude, exponent);
          std::byte& packed = data_[static_cast<size_t>(r * (cols_ / 2) + c / 2)];
          packed |= std::byte{code} << (c % 2 == 0 ? 0 : 4);
        });
      }
    }
  }

  static uint8_t nearest_e2m1(float value) {
    uint8_t best = 0;
    for (uint8_t code = 1; code < 8; ++code) {
      const float distance = std::abs(kMagnitudesE2M1[code] - std::abs(value));
      if (distance < std::abs(kMagnitudesE2M1[best] - std::abs(value))) best = code;
    }
    return best != 0 && value < 0 ? best | 8 : best;
  }

  WeightFormat format_;
  int64_t rows_;
  int64_t cols_;
  std::vector<std::byte> data_;
  std::vector<std::byte> scales_;
  std::vector<std::byte> packed_data_;
  std::vector<std::byte> packed_scales_;
  std::vector<float> decoded_;
};

// Encoded activations that own their bytes.
class StoredActivations {
 public:
  StoredActivations(ActivationType type, const std::vector<float>& values, int64_t rows,
                    int64_t cols)
      : type_(type), cols_(cols) {
    const auto row_bytes = static_cast<size_t>(activation_row_bytes(type, cols));
    data_.resize(static_cast<size_t>(rows) * row_bytes);
    for (int64_t row = 0; row < rows; ++row) {
      std::byte* out = data_.data() + static_cast<size_t>(row) * row_bytes;
      encode(values.data() + row * cols, out);
    }
  }

  // Rows [first, first + count).
  Activations view(int64_t first, int64_t count) const {
    return {.type = type_,
            .rows = count,
            .cols = cols_,
            .data = data_.data() + first * activation_row_bytes(type_, cols_)};
  }
  const std::vector<std::byte>& data() const { return data_; }
  // What the bytes stand for, [rows, cols].
  const std::vector<float>& decoded() const { return decoded_; }

 private:
  void encode(const float* values, std::byte* out) {
    for (int64_t first = 0; first < cols_; first += 32) {
      const int64_t last = std::min(first + 32, cols_);
      float largest = 0;
      for (int64_t i = first; i < last; ++i) largest = std::max(largest, std::abs(values[i]));
      const float scale = largest / 127;
      int32_t sum = 0;
      for (int64_t i = first; i < last; ++i) sum += encode_one(values[i], scale, i, out);
      if (type_ == ActivationType::kInt8) {
        sum *= 12;
        std::byte* block = out + first / 32 * 40;
        std::memcpy(block + 32, &scale, 4);
        std::memcpy(block + 36, &sum, 4);
      }
    }
  }

  // What it adds to the sum of a block of int8.
  int32_t encode_one(float value, float scale, int64_t index, std::byte* out) {
    if (type_ == ActivationType::kF32) {
      std::memcpy(out + index * 4, &value, 4);
      decoded_.push_back(value);
    } else if (type_ == ActivationType::kBF16) {
      const tensor::BFloat16 narrow = tensor::to_bf16(value);
      std::memcpy(out + index * 2, &narrow, 2);
      decoded_.push_back(tensor::to_f32(narrow));
    } else {
      const auto steps = static_cast<int8_t>(scale > 0 ? std::nearbyint(value / scale) : 0);
      out[index / 32 * 40 + index % 32] = static_cast<std::byte>(steps);
      decoded_.push_back(static_cast<float>(steps) * scale);
      return steps;
    }
    return 0;
  }

  ActivationType type_;
  int64_t cols_;
  std::vector<std::byte> data_;
  std::vector<float> decoded_;
};

}  // namespace ingot::kernels
