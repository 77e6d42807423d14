#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "tensor/dtype.h"
#include "tensor/float16.h"

// Values to quantize, for tests: of many kinds, in the three types that a checkpoint has them in.
namespace ingot::kernels {

enum class SourceKind : uint8_t {
  kNormal,      // like weights
  kHeavyTails,  // a ratio of normal values
  kOutlier,     // one large value in some forty
  kZeros,       // most values 0 or -0
  kTies,        // midpoints of e2m1 and their neighbours
  kSubnormal,   // of the type or below it
  kHuge,        // up to the type's largest
  kAnyBits,     // every exponent alike
};
inline constexpr std::array kSourceKinds = {
    SourceKind::kNormal, SourceKind::kHeavyTails, SourceKind::kOutlier, SourceKind::kZeros,
    SourceKind::kTies,   SourceKind::kSubnormal,  SourceKind::kHuge,    SourceKind::kAnyBits};

inline std::string name(SourceKind kind) {
  constexpr std::array<const char*, 8> kNames = {"normal", "heavy tails", "outlier", "zeros",
                                                 "ties",   "subnormal",   "huge",    "any bits"};
  return kNames[static_cast<size_t>(kind)];
}

class SourceValues {
 public:
  SourceValues(tensor::DType dtype, const std::vector<float>& values)
      : dtype_(dtype), values_(values.size()), bytes_(values.size() * tensor::size_bytes(dtype)) {
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  }
  SourceValues(tensor::DType dtype, SourceKind kind, int64_t count)
      : SourceValues(dtype, make(dtype, kind, count)) {}

  tensor::DType dtype() const { return dtype_; }
  int64_t count() const { return static_cast<int64_t>(values_.size()); }
  const void* data() const { return bytes_.data(); }
  // As stored, in f32.
  float value(int64_t i) const { return values_[static_cast<size_t>(i)]; }

  void set(int64_t index, float value) {
    const auto i = static_cast<size_t>(index);
    if (dtype_ == tensor::DType::kF16) {
      store(i, tensor::to_f16(value));
    } else if (dtype_ == tensor::DType::kBF16) {
      store(i, tensor::to_bf16(value));
    } else {
      store(i, value);
    }
  }

 private:
  template <typename T>
  void store(size_t i, T value) {
    std::memcpy(bytes_.data() + i * sizeof value, &value, sizeof value);
    values_[i] = tensor::to_f32(value);
  }

  static float largest(tensor::DType dtype) {
    if (dtype == tensor::DType::kF16) return 65504;
    return dtype == tensor::DType::kBF16 ? 0x1.FEp127f : 0x1.FFFFFEp127f;
  }

  static std::vector<float> make(tensor::DType dtype, SourceKind kind, int64_t count) {
    const base::RandomStream stream = base::random_stream(11, name(kind));
    std::vector<float> values;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(make_one(dtype, kind, stream, static_cast<uint64_t>(i)));
    }
    return values;
  }

  static float make_one(tensor::DType dtype, SourceKind kind, const base::RandomStream& stream,
                        uint64_t i) {
    constexpr float kMidpoints[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5, 6};
    const auto normal = static_cast<float>(stream.normal(2 * i));
    const uint64_t word = stream.word(2 * i + 1);
    const bool is_f16 = dtype == tensor::DType::kF16;
    switch (kind) {
      case SourceKind::kNormal:
        return normal * 0.02f;
      case SourceKind::kHeavyTails:
        return normal * 0.02f / (std::abs(static_cast<float>(stream.normal(2 * i + 1))) + 1e-3f);
      case SourceKind::kOutlier:
        return word % 41 == 0 ? normal * 10 : normal * 0.01f;
      case SourceKind::kZeros:
        return i / 64 % 2 == 0 || word % 5 < 3 ? std::copysign(0.0f, normal) : normal;
      case SourceKind::kTies: {
        const float tie =
            kMidpoints[word % 8] * (1 + 0x1p-8f * static_cast<float>(word / 8 % 3) - 0x1p-8f);
        return std::ldexp(std::copysign(tie, normal), static_cast<int>(i / 128 % 9) * 2 - 10);
      }
      case SourceKind::kSubnormal:
        return std::ldexp(normal, (is_f16 ? -15 : -127) - static_cast<int>(i / 64 % 10));
      case SourceKind::kHuge:
        return std::copysign(largest(dtype) * (static_cast<float>(word % 4096 + 1) / 4096), normal);
      case SourceKind::kAnyBits: {
        const float value =
            std::ldexp(1 + static_cast<float>(word % 256) / 256,
                       static_cast<int>(word / 256 % (is_f16 ? 39 : 276)) - (is_f16 ? 24 : 149));
        return std::copysign(std::min(value, largest(dtype)), normal);
      }
    }
    return 0;
  }

  tensor::DType dtype_;
  std::vector<float> values_;
  std::vector<std::byte> bytes_;
};

}  // namespace ingot::kernels
