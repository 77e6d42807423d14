#include "model/kv_cache.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "model/config_fixture.h"

namespace ingot::model {
namespace {

using kernels::CacheType;

TEST(KvCache, BytesPerTokenOfGlm52) {
  const ModelConfig config = parsed(golden_config("configs/glm-5.2.json"));
  const int64_t full = std::ranges::count(config.indexer_types, IndexerType::kFull);
  const auto main = [&](CacheType type) {
    return cache_bytes_per_token(config, type, CacheLayers::kMain);
  };
  EXPECT_EQ(main(CacheType::kF32).latents, 78 * 576 * 4);
  EXPECT_EQ(main(CacheType::kBF16).latents, 78 * 576 * 2);
  EXPECT_EQ(main(CacheType::kFp8).latents, 78 * 656);
  EXPECT_EQ(main(CacheType::kF32).index_keys, full * 128 * 4);
  EXPECT_EQ(main(CacheType::kBF16).index_keys, full * 128 * 2);
  EXPECT_EQ(main(CacheType::kFp8).index_keys, full * 128 * 2);  // never in fp8
  const auto with_mtp = cache_bytes_per_token(config, CacheType::kFp8, CacheLayers::kWithMtp);
  EXPECT_EQ(with_mtp.total() - main(CacheType::kFp8).total(), 656 + 128 * 2);
}

TEST(KvCache, ViewsSayHowTheirRowsLie) {
  const ModelConfig config = parsed(small_config());
  for (const CacheType type : {CacheType::kF32, CacheType::kBF16, CacheType::kFp8}) {
    const KvCache cache = KvCache::create(config, type, CacheLayers::kWithMtp, 3).value();
    for (int64_t layer = 0; layer < 4; ++layer) {
      EXPECT_EQ(cache.latents(layer).type, type);
      EXPECT_EQ(cache.latents(layer).width, 28);
      EXPECT_EQ(cache.latents(layer).latent_dim, 20);
      EXPECT_NE(cache.latents(layer).data, nullptr);
      const bool full = layer != 2;
      EXPECT_EQ(cache.index_keys(layer).data != nullptr, full) << layer;
      if (full) {
        EXPECT_EQ(cache.index_keys(layer).type, kernels::index_key_type(type));
      }
    }
  }
}

}  // namespace
}  // namespace ingot::model
