#include "kernels/paged_cache.h"

#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "kernels/cache_rows.h"
#include "kernels/test_team.h"

namespace ingot::kernels {
namespace {

CacheView view_of(std::vector<std::byte>& bytes, CacheType type, int64_t latent_dim, int64_t rope,
                  int64_t rows) {
  CacheView view{.type = type, .width = latent_dim + rope, .latent_dim = latent_dim};
  bytes.assign(static_cast<size_t>(rows * view.row_bytes()), std::byte{0xAA});
  view.data = bytes.data();
  return view;
}

TEST(PagedCache, RowSizes) {
  EXPECT_EQ(cache_row_bytes(CacheType::kF32, 576, 512), 2304);
  EXPECT_EQ(cache_row_bytes(CacheType::kBF16, 576, 512), 1152);
  EXPECT_EQ(cache_row_bytes(CacheType::kFp8, 576, 512), 656);
  EXPECT_EQ(cache_row_bytes(CacheType::kFp8, 23, 18), 20 + 4 + 12);  // filled up twice
  EXPECT_EQ(index_key_type(CacheType::kF32), CacheType::kF32);
  EXPECT_EQ(index_key_type(CacheType::kBF16), CacheType::kBF16);
  EXPECT_EQ(index_key_type(CacheType::kFp8), CacheType::kBF16);
}

// The largest of every group of 128 is kept to f32's precision, the others to three bits; rope
// values are bf16; neighbours stay as they are.
void expect_scaled_by_group(StoreCacheRow store) {
  for (const auto& [latent_dim, rope] : {std::pair{512, 64}, {300, 6}, {18, 5}, {128, 2}}) {
    std::vector<std::byte> bytes;
    const CacheView view = view_of(bytes, CacheType::kFp8, latent_dim, rope, 3);
    auto values = random_values("row", latent_dim + rope);
    for (int64_t i = 0; i < latent_dim; ++i) {  // groups of very different size
      values[static_cast<size_t>(i)] *= std::ldexp(1.0f, static_cast<int>(i / 128) * 20 - 30);
    }
    store(view, 1, values.data());
    const Fp8CacheRow row(view, 1);
    for (int64_t i = 0; i < latent_dim + rope; ++i) {
      const float value = values[static_cast<size_t>(i)];
      if (i >= latent_dim) {
        EXPECT_EQ(row.value(i), tensor::to_f32(tensor::to_bf16(value)));
        continue;
      }
      const int64_t group = i / 128 * 128;
      float largest = 0;
      for (int64_t j = group; j < std::min<int64_t>(group + 128, latent_dim); ++j) {
        largest = std::max(largest, std::abs(values[static_cast<size_t>(j)]));
      }
      const float subnormal_half = largest / 448 * 0x1p-10f;
      EXPECT_NEAR(row.value(i), value, std::abs(value) / 16 * 1.0001f + subnormal_half);
      if (std::abs(value) == largest) {
        EXPECT_NEAR(row.value(i), value, largest * 1e-6f);
      }
    }
    const auto row_bytes = static_cast<size_t>(view.row_bytes());
    for (size_t i = 0; i < row_bytes; ++i) {
      EXPECT_EQ(bytes[i], std::byte{0xAA});
      EXPECT_EQ(bytes[2 * row_bytes + i], std::byte{0xAA});
    }
  }
}

TEST(PagedCache, Fp8RowsAreScaledByGroup) {
  for (const Target target : usable_targets()) {
    expect_scaled_by_group(row_operations(target).store(CacheType::kFp8));
  }
}

void expect_zeros_and_nan_kept_apart(StoreCacheRow store) {
  std::vector<std::byte> bytes;
  const CacheView view = view_of(bytes, CacheType::kFp8, 256, 2, 1);
  for (const float bad : {std::numeric_limits<float>::infinity(), std::nanf("")}) {
    std::vector<float> values(258, 0.0f);
    values[200] = bad;
    store(view, 0, values.data());
    const Fp8CacheRow row(view, 0);
    for (int64_t i = 0; i < 128; ++i) EXPECT_EQ(row.value(i), 0.0f);
    for (int64_t i = 128; i < 256; ++i) EXPECT_TRUE(std::isnan(row.value(i)));
    EXPECT_EQ(row.value(256), 0.0f);
  }
}

TEST(PagedCache, Fp8GroupsOfZerosAndOfNothingFinite) {
  for (const Target target : usable_targets()) {
    expect_zeros_and_nan_kept_apart(row_operations(target).store(CacheType::kFp8));
  }
}

TEST(PagedCache, PlainRows) {
  const auto values = random_values("row", 10);
  for (const Target target : usable_targets()) {
    std::vector<std::byte> bytes;
    const CacheView wide = view_of(bytes, CacheType::kF32, 8, 2, 2);
    row_operations(target).store(CacheType::kF32)(wide, 1, values.data());
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(F32CacheRow(wide, 1).value(i), values[static_cast<size_t>(i)]);
    }
    const CacheView narrow = view_of(bytes, CacheType::kBF16, 8, 2, 2);
    row_operations(target).store(CacheType::kBF16)(narrow, 1, values.data());
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(BF16CacheRow(narrow, 1).value(i),
                tensor::to_f32(tensor::to_bf16(values[static_cast<size_t>(i)])));
    }
  }
}

// Values that rounding treats each in its own way, of every size, sign and kind.
std::vector<float> awkward_values(int64_t count) {
  auto values = random_values("awkward", count);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint32_t bits = std::bit_cast<uint32_t>(values[i]);
    switch (i % 6) {
      case 0:
        values[i] = std::ldexp(values[i], static_cast<int>(i) % 40 - 20);
        break;
      case 1:
        values[i] = std::bit_cast<float>((bits & 0xFFFF0000u) | 0x8000u);  // bf16's ties
        break;
      case 2:
        values[i] = std::bit_cast<float>((bits & 0xFFF00000u) | 0x80000u);  // e4m3's, by chance
        break;
      case 3:
        values[i] = i % 4 == 0 ? 0.0f : -0.0f;
        break;
      case 4:
        values[i] *= 0x1p-140f;
        break;
      default:
        break;
    }
  }
  return values;
}

TEST(PagedCache, EveryTargetStoresTheSameBytes) {
  for (const auto& [latent_dim, rope] : {std::pair{512, 64}, {300, 6}, {18, 5}, {1, 1}, {8, 0}}) {
    const int64_t width = latent_dim + rope;
    auto finite = awkward_values(width);
    auto spoiled = finite;
    spoiled.front() = -std::nanf("");
    spoiled.back() = std::numeric_limits<float>::infinity();
    auto large = finite;  // the steps around e4m3's largest
    for (float& value : large) value *= 0x1p100f;
    auto subnormal = finite;  // scales that f32 cannot hold exactly
    for (float& value : subnormal) value *= 0x1p-135f;
    for (const CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kFp8}) {
      for (const auto& values : {finite, spoiled, large, subnormal}) {
        std::vector<std::byte> want;
        const CacheView wanted = view_of(want, type, latent_dim, rope, 3);
        row_operations(Target::kReference).store(type)(wanted, 1, values.data());
        for (const Target target : usable_targets()) {
          std::vector<std::byte> got;
          const CacheView view = view_of(got, type, latent_dim, rope, 3);
          row_operations(target).store(type)(view, 1, values.data());
          EXPECT_EQ(got, want) << name(target) << " " << name(type) << " " << width;
        }
      }
    }
  }
}

}  // namespace
}  // namespace ingot::kernels
