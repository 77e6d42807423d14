#include "model/kv_cache.h"

namespace ingot::model {
namespace {

int64_t latent_width(const ModelConfig& config) {
  return config.kv_lora_rank + config.qk_rope_head_dim;
}

}  // namespace

CacheBytesPerToken cache_bytes_per_token(const ModelConfig& config, kernels::CacheType type,
                                         CacheLayers layers) {
  const int64_t count = config.num_hidden_layers +
                        (layers == CacheLayers::kWithMtp ? config.num_nextn_predict_layers : 0);
  const int64_t element = kernels::size_bytes(type);
  CacheBytesPerToken bytes;
  for (int64_t layer = 0; layer < count; ++layer) {
    bytes.latents += latent_width(config) * element;
    if (config.indexer_type(layer) == IndexerType::kFull) {
      bytes.index_keys += config.index_head_dim * element;
    }
  }
  return bytes;
}

base::Result<KvCache> KvCache::create(const ModelConfig& config, kernels::CacheType type,
                                      int64_t num_pages) {
  const int64_t rows = num_pages * kernels::kPageTokens;
  const int64_t element = kernels::size_bytes(type);
  const auto bytes_of = [&](int64_t width) {
    return static_cast<uint64_t>(rows * width * element);
  };
  uint64_t capacity_bytes = 0;
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    capacity_bytes += base::Arena::padded(bytes_of(latent_width(config)));
    if (config.indexer_type(layer) == IndexerType::kFull) {
      capacity_bytes += base::Arena::padded(bytes_of(config.index_head_dim));
    }
  }
  KvCache cache;
  cache.type_ = type;
  cache.num_pages_ = num_pages;
  cache.arena_ = TRY(base::Arena::create(capacity_bytes, "the key-value cache's pages"));
  for (int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    const auto view = [&](int64_t width) {
      return kernels::CacheView{
          .type = type, .data = cache.arena_.allocate(bytes_of(width)), .width = width};
    };
    cache.latents_.push_back(view(latent_width(config)));
    const bool full = config.indexer_type(layer) == IndexerType::kFull;
    cache.index_keys_.push_back(full ? view(config.index_head_dim) : kernels::CacheView{});
  }
  return cache;
}

}  // namespace ingot::model
