#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ingot::kernels {

// Positions that one page holds. A sequence's position p lies in row
// page_table[p / kPageTokens] * kPageTokens + p % kPageTokens of every layer's cache.
inline constexpr int64_t kPageTokens = 16;

enum class CacheType : uint8_t {
  kF32,
  kBF16,
  kFp8,  // latents in e4m3, rope values in bf16; of latent caches only
};

constexpr std::string_view name(CacheType type) {
  switch (type) {
    case CacheType::kF32:
      return "f32";
    case CacheType::kBF16:
      return "bf16";
    case CacheType::kFp8:
      return "fp8";
  }
  return "";
}

// In what index keys are kept beside latents of a type: never in e4m3.
constexpr CacheType index_key_type(CacheType latents) {
  return latents == CacheType::kFp8 ? CacheType::kBF16 : latents;
}

// One layer's cache of one kind (latents, or index keys): num_pages * kPageTokens rows of `width`
// values, row_bytes() apart.
//
// A row of kFp8, as FlashMLA (DeepSeek, 2025) has it for 512 + 64 values in 656 bytes:
//   e4m3 [latent_dim]               the first values, filled up to a multiple of 4 bytes
//   f32  [ceil(latent_dim / 128)]   their scales: value = e4m3 * scale
//   bf16 [width - latent_dim]       the others, filled up to a multiple of 4 bytes
struct CacheView {
  CacheType type = CacheType::kF32;
  void* data = nullptr;
  int64_t width = 0;
  int64_t latent_dim = 0;  // of kFp8

  int64_t row_bytes() const;
  std::byte* row(int64_t cache_row) const {
    return static_cast<std::byte*>(data) + cache_row * row_bytes();
  }
};

// Values that share a scale in a row of kFp8.
inline constexpr int64_t kFp8CacheGroup = 128;

// Where the parts of a kFp8 row begin, in bytes.
struct Fp8CacheRowLayout {
  int64_t scales;
  int64_t rope;
  int64_t size;
};
constexpr Fp8CacheRowLayout fp8_cache_row_layout(int64_t width, int64_t latent_dim) {
  const auto whole_words = [](int64_t bytes) { return (bytes + 3) / 4 * 4; };
  const int64_t scales = whole_words(latent_dim);
  const int64_t rope = scales + (latent_dim + kFp8CacheGroup - 1) / kFp8CacheGroup * 4;
  return {.scales = scales, .rope = rope, .size = rope + whole_words((width - latent_dim) * 2)};
}

// Bytes of one row; latent_dim matters to kFp8 alone.
constexpr int64_t cache_row_bytes(CacheType type, int64_t width, int64_t latent_dim) {
  switch (type) {
    case CacheType::kF32:
      return width * 4;
    case CacheType::kBF16:
      return width * 2;
    case CacheType::kFp8:
      return fp8_cache_row_layout(width, latent_dim).size;
  }
  return 0;
}

inline int64_t CacheView::row_bytes() const { return cache_row_bytes(type, width, latent_dim); }

// What a batch's rows are: row i is one token of some sequence. Plain pointers into arrays of
// `count` that outlive the step.
struct BatchRows {
  int64_t count = 0;
  const int32_t* positions = nullptr;           // in its sequence, from 0; what rope rotates by
  const int32_t* const* page_tables = nullptr;  // of its sequence
  const uint8_t* writes = nullptr;              // 0: computed again, must not touch the cache
  const int32_t* key_counts = nullptr;  // keys a row may see; null: all up to its own position
  int32_t slot_offset = 0;              // position p lies in the cache at slot p + slot_offset

  int64_t cache_row(int64_t row, int64_t position) const {
    const int64_t slot = position + slot_offset;
    return page_tables[row][slot / kPageTokens] * kPageTokens + slot % kPageTokens;
  }
  int64_t num_keys(int64_t row) const {
    return key_counts == nullptr ? positions[row] + 1 : key_counts[row];
  }
};

// Stores `cache.width` values as one row, rounding to nearest even: a function for each CacheType.
// That of kFp8 scales each group of latents so that its largest becomes 448; a group of zeros has
// scale 0, and one that is not finite has scale NaN. All targets store the same bytes.
using StoreCacheRow = void (*)(const CacheView& cache, int64_t cache_row, const float* values);
void store_f32_row(const CacheView& cache, int64_t cache_row, const float* values);
void store_bf16_row_reference(const CacheView& cache, int64_t cache_row, const float* values);
void store_bf16_row_avx2(const CacheView& cache, int64_t cache_row, const float* values);
void store_fp8_row_reference(const CacheView& cache, int64_t cache_row, const float* values);
void store_fp8_row_avx2(const CacheView& cache, int64_t cache_row, const float* values);

}  // namespace ingot::kernels
