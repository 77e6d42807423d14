#pragma once

#include <cstdint>

#include "kernels/dot_reference.h"
#include "kernels/paged_cache.h"
#include "tensor/float16.h"
#include "tensor/fp8.h"

namespace ingot::kernels {

// Readers of one row of a latent cache, a type for each CacheType, in the form that dot_reference
// takes. Each is made from (view, cache row); value(k) is complete, no scale is left to apply.

template <CacheType kTheType, typename T>
struct PlainCacheRow : PlainValues<T> {
  static constexpr CacheType kType = kTheType;
  PlainCacheRow(const CacheView& cache, int64_t cache_row)
      : PlainValues<T>{static_cast<const T*>(cache.data) + cache_row * cache.width} {}
};
using F32CacheRow = PlainCacheRow<CacheType::kF32, float>;
using BF16CacheRow = PlainCacheRow<CacheType::kBF16, tensor::BFloat16>;

struct Fp8CacheRow {
  static constexpr CacheType kType = CacheType::kFp8;
  Fp8CacheRow(const CacheView& cache, int64_t cache_row) : latent_dim(cache.latent_dim) {
    const Fp8CacheRowLayout layout = fp8_cache_row_layout(cache.width, cache.latent_dim);
    const std::byte* row = cache.row(cache_row);
    latents = reinterpret_cast<const tensor::Float8E4M3*>(row);
    scales = reinterpret_cast<const float*>(row + layout.scales);
    rope = reinterpret_cast<const tensor::BFloat16*>(row + layout.rope);
  }

  float value(int64_t k) const {
    if (k >= latent_dim) return tensor::to_f32(rope[k - latent_dim]);
    return tensor::to_f32(latents[k]) * scales[k / kFp8CacheGroup];
  }
  static float block_scale(int64_t) { return 1; }
  static float row_scale() { return 1; }

  int64_t latent_dim;
  const tensor::Float8E4M3* latents;
  const float* scales;
  const tensor::BFloat16* rope;
};

}  // namespace ingot::kernels
