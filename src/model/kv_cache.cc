#include "model/kv_cache.h"

namespace ingot::model {
namespace {

// One layer's caches before they have memory.
kernels::CacheView latent_view(const ModelConfig& config, kernels::CacheType type) {
  return {.type = type,
          .data = nullptr,
          .width = config.kv_lora_rank + config.qk_rope_head_dim,
          .latent_dim = config.kv_lora_rank};
}

kernels::CacheView index_key_view(const ModelConfig& config, kernels::CacheType type) {
  return {.type = kernels::index_key_type(type), .data = nullptr, .width = config.index_head_dim};
}

int64_t layer_count(const ModelConfig& config, CacheLayers layers) {
  return config.num_hidden_layers +
         (layers == CacheLayers::kWithMtp ? config.num_nextn_predict_layers : 0);
}

}  // namespace

CacheBytesPerToken cache_bytes_per_token(const ModelConfig& config, kernels::CacheType type,
                                         CacheLayers layers) {
  const int64_t count = layer_count(config, layers);
  CacheBytesPerToken bytes;
  for (int64_t layer = 0; layer < count; ++layer) {
    bytes.latents += latent_view(config, type).row_bytes();
    if (config.indexer_type(layer) == IndexerType::kFull) {
      bytes.index_keys += index_key_view(config, type).row_bytes();
    }
  }
  return bytes;
}

base::Result<KvCache> KvCache::create(const ModelConfig& config, kernels::CacheType type,
                                      CacheLayers layers, int64_t num_pages) {
  const int64_t count = layer_count(config, layers);
  const int64_t rows = num_pages * kernels::kPageTokens;
  const auto bytes_of = [&](const kernels::CacheView& view) {
    return static_cast<uint64_t>(rows * view.row_bytes());
  };
  const kernels::CacheView latents = latent_view(config, type);
  const kernels::CacheView index_keys = index_key_view(config, type);
  uint64_t capacity_bytes = 0;
  for (int64_t layer = 0; layer < count; ++layer) {
    capacity_bytes += base::Arena::padded(bytes_of(latents));
    if (config.indexer_type(layer) == IndexerType::kFull) {
      capacity_bytes += base::Arena::padded(bytes_of(index_keys));
    }
  }
  KvCache cache;
  cache.arena_ = TRY(base::Arena::create(capacity_bytes, "the key-value cache's pages"));
  for (int64_t layer = 0; layer < count; ++layer) {
    const auto add = [&](kernels::CacheView view, std::vector<kernels::CacheView>& views) {
      view.data = cache.arena_.allocate(bytes_of(view));
      views.push_back(view);
    };
    add(latents, cache.latents_);
    if (config.indexer_type(layer) == IndexerType::kFull) {
      add(index_keys, cache.index_keys_);
    } else {
      cache.index_keys_.emplace_back();
    }
  }
  return cache;
}

}  // namespace ingot::model
