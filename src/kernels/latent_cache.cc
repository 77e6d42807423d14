#include "kernels/latent_cache.h"

#include <cstring>

#include "base/check.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
void rope_and_cache_write(const ExecutionContext& context, const RopeAndCacheWriteArgs& args) {
  const int64_t width = args.latent_dim + args.rope_dim;
  const int64_t head_dim = args.nope_dim + args.rope_dim;
  CHECK(args.latents.width == width);
  CHECK(args.latents.type != CacheType::kFp8 || args.latents.latent_dim == args.latent_dim);
  const RowOperations& rows = context.rows();
  const StoreCacheRow store = rows.store(args.latents.type);
  float* latent = args.scratch + context.member() * width;
  const base::IndexRange range = context.share(args.rows.count);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const float* table = args.rope + row * args.rope_dim;
    for (int64_t head = 0; head < args.heads; ++head) {
      float* q = args.q + (row * args.heads + head) * head_dim;
      rows.rotate(q + args.nope_dim, table, args.rope_dim, args.style);
    }
    if (args.rows.writes[row] == 0) continue;
    const float* kv = args.kv + row * width;
    rows.rms_norm(kv, args.norm_weight, args.latent_dim, args.eps, latent);
    std::memcpy(latent + args.latent_dim, kv + args.latent_dim,
                static_cast<size_t>(args.rope_dim) * sizeof(float));
    rows.rotate(latent + args.latent_dim, table, args.rope_dim, args.style);
    store(args.latents, args.rows.cache_row(row, args.rows.positions[row]), latent);
  }
  context.barrier();
}

}  // namespace ingot::kernels
