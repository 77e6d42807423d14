#pragma once

#include <cstdint>
#include <vector>

#include "base/arena.h"
#include "base/result.h"
#include "kernels/paged_cache.h"
#include "model/model_config.h"

namespace ingot::model {

// Cache bytes that one token takes in all layers together.
struct CacheBytesPerToken {
  int64_t latents = 0;     // kv_lora_rank + qk_rope_head_dim values a layer
  int64_t index_keys = 0;  // index_head_dim values a layer with an indexer of its own
  int64_t total() const { return latents + index_keys; }
};

// Of the main layers, or with the MTP layer's rows as well.
enum class CacheLayers : uint8_t { kMain, kWithMtp };
CacheBytesPerToken cache_bytes_per_token(const ModelConfig& config, kernels::CacheType type,
                                         CacheLayers layers);

// The memory behind page numbers: one page addresses kPageTokens rows of every layer's latents and
// of every full layer's index keys. Who owns which page is not known here.
class KvCache {
 public:
  // Errors: not enough memory.
  static base::Result<KvCache> create(const ModelConfig& config, kernels::CacheType type,
                                      CacheLayers layers, int64_t num_pages);

  // The MTP layer's is number num_hidden_layers.
  const kernels::CacheView& latents(int64_t layer) const {
    return latents_[static_cast<size_t>(layer)];
  }
  // Without data in layers that have no indexer of their own.
  const kernels::CacheView& index_keys(int64_t layer) const {
    return index_keys_[static_cast<size_t>(layer)];
  }

 private:
  KvCache() = default;

  base::Arena arena_;
  std::vector<kernels::CacheView> latents_;
  std::vector<kernels::CacheView> index_keys_;
};

}  // namespace ingot::model
