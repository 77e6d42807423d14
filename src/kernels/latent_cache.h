#pragma once

#include <cstdint>

#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"
#include "kernels/rope.h"

namespace ingot::kernels {

// Multi-head latent attention's rope and cache write (DeepSeek-V2, 2024): rotates the last
// `rope_dim` values of each query head in place, norms the latent part of kv, rotates its rope part
// and stores both as one cache row [latent_dim + rope_dim].
struct RopeAndCacheWriteArgs {
  BatchRows rows;
  const float* rope;  // rope_table's [rows, rope_dim]
  RopeStyle style;
  float* q;  // [rows, heads, nope_dim + rope_dim], rotated in place
  int64_t heads;
  int64_t nope_dim;
  int64_t rope_dim;
  const float* kv;           // [rows, latent_dim + rope_dim], as kv_a_proj_with_mqa gives it
  const float* norm_weight;  // [latent_dim]
  float eps;
  int64_t latent_dim;
  CacheView latents;  // width latent_dim + rope_dim, and the same latent_dim
  float* scratch;     // [team, latent_dim + rope_dim]
};

// Collective.
void rope_and_cache_write(const ExecutionContext& context, const RopeAndCacheWriteArgs& args);

}  // namespace ingot::kernels
