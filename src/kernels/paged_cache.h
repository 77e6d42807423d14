#pragma once

#include <cstdint>
#include <string_view>

namespace ingot::kernels {

// Positions that one page holds. A sequence's position p lies in row
// page_table[p / kPageTokens] * kPageTokens + p % kPageTokens of every layer's cache.
inline constexpr int64_t kPageTokens = 16;

enum class CacheType : uint8_t { kF32, kBF16 };

constexpr std::string_view name(CacheType type) { return type == CacheType::kF32 ? "f32" : "bf16"; }
constexpr int64_t size_bytes(CacheType type) { return type == CacheType::kF32 ? 4 : 2; }

// One layer's cache of one kind (latents, or index keys): [num_pages * kPageTokens, width].
struct CacheView {
  CacheType type = CacheType::kF32;
  void* data = nullptr;
  int64_t width = 0;
};

// What a batch's rows are: row i is one token of some sequence. Plain pointers into arrays of
// `count` that outlive the step.
struct BatchRows {
  int64_t count = 0;
  const int32_t* positions = nullptr;           // in its sequence, from 0
  const int32_t* const* page_tables = nullptr;  // of its sequence
  const uint8_t* writes = nullptr;              // 0: computed again, must not touch the cache

  int64_t cache_row(int64_t row, int64_t position) const {
    return page_tables[row][position / kPageTokens] * kPageTokens + position % kPageTokens;
  }
  int64_t num_keys(int64_t row) const { return positions[row] + 1; }
};

// Stores `cache.width` values as one row, rounding to nearest even.
void store_cache_row(const CacheView& cache, int64_t cache_row, const float* values);

}  // namespace ingot::kernels
