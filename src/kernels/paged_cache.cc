#include "kernels/paged_cache.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/float16.h"
#include "tensor/fp8.h"

namespace ingot::kernels {
void store_f32_row(const CacheView& cache, int64_t cache_row, const float* values) {
  std::copy_n(values, cache.width, reinterpret_cast<float*>(cache.row(cache_row)));
}

void store_bf16_row_reference(const CacheView& cache, int64_t cache_row, const float* values) {
  std::transform(values, values + cache.width,
                 reinterpret_cast<tensor::BFloat16*>(cache.row(cache_row)), tensor::to_bf16);
}

void store_fp8_row_reference(const CacheView& cache, int64_t cache_row, const float* values) {
  std::byte* row = cache.row(cache_row);
  const Fp8CacheRowLayout layout = fp8_cache_row_layout(cache.width, cache.latent_dim);
  auto* latents = reinterpret_cast<tensor::Float8E4M3*>(row);
  auto* scales = reinterpret_cast<float*>(row + layout.scales);
  auto* rope = reinterpret_cast<tensor::BFloat16*>(row + layout.rope);
  for (int64_t first = 0; first < cache.latent_dim; first += kFp8CacheGroup) {
    const int64_t last = std::min(first + kFp8CacheGroup, cache.latent_dim);
    float largest = 0;
    bool finite = true;
    for (int64_t i = first; i < last; ++i) {
      largest = std::max(largest, std::abs(values[i]));
      finite &= std::isfinite(values[i]);
    }
    const float scale =
        finite ? largest / tensor::kFloat8E4M3Max : std::numeric_limits<float>::quiet_NaN();
    scales[first / kFp8CacheGroup] = scale;
    for (int64_t i = first; i < last; ++i) {
      latents[i] = tensor::to_e4m3(scale > 0 ? values[i] / scale : 0.0f);
    }
  }
  for (int64_t i = cache.latent_dim; i < cache.width; ++i) {
    rope[i - cache.latent_dim] = tensor::to_bf16(values[i]);
  }
}

}  // namespace ingot::kernels
