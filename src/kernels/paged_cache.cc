#include "kernels/paged_cache.h"

#include "tensor/float16.h"

namespace ingot::kernels {
namespace {

float encode(float value, float) { return value; }
tensor::BFloat16 encode(float value, tensor::BFloat16) { return tensor::to_bf16(value); }

template <typename T>
void store_row(const CacheView& cache, int64_t cache_row, const float* values) {
  T* out = static_cast<T*>(cache.data) + cache_row * cache.width;
  for (int64_t i = 0; i < cache.width; ++i) out[i] = encode(values[i], T{});
}

}  // namespace

void store_cache_row(const CacheView& cache, int64_t cache_row, const float* values) {
  if (cache.type == CacheType::kF32) {
    store_row<float>(cache, cache_row, values);
  } else {
    store_row<tensor::BFloat16>(cache, cache_row, values);
  }
}

}  // namespace ingot::kernels
