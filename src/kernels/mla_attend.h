#pragma once

#include <cstdint>
#include <span>

#include "kernels/execution_context.h"
#include "kernels/index_select.h"
#include "kernels/paged_cache.h"
#include "kernels/variant.h"
#include "kernels/weight.h"

namespace ingot::kernels {

// Multi-head latent attention in its absorbed form (DeepSeek-V2, 2024, section 2.1): per row and
// head
//   qa = Wk^T q_nope;  w = softmax over selected t of scale * (qa . c_t + q_rope . k_t);
//   z = sum of w_t c_t;  out = Wv z
// with cache rows (c_t, k_t) and kv_b's rows of a head being nope_dim of Wk, then value_dim of Wv.
//
// Order of summation: selected positions ascending in spans of kAttendSpanKeys. A span has its own
// maximum, sum and weighted latent; spans are merged in order.
struct MlaAttendArgs {
  BatchRows rows;
  const float* q;  // [rows, heads, nope_dim + rope_dim], rope applied
  Weight kv_b;     // [heads * (nope_dim + value_dim), latent_dim]
  CacheView latents;
  Selection selection;
  float scale;
  int64_t heads;
  int64_t nope_dim;
  int64_t rope_dim;
  int64_t value_dim;
  int64_t latent_dim;
  float* out;      // [rows, heads, value_dim]
  float* scratch;  // [team, mla_attend_scratch_floats()]
};

inline constexpr int64_t kAttendSpanKeys = 512;

// What a member works on at once: kv_b is read once for so many rows (what is absorbed waits in
// scratch), heads share the keys that they read, and cached rows that need unpacking are unpacked
// block by block.
inline constexpr int64_t kAttendTileRows = 16;
inline constexpr int64_t kAttendTileHeads = 32;
inline constexpr int64_t kAttendBlockKeys = 64;

// Where the parts of a member's scratch begin, in floats. Widths are whole vectors; arrays that
// are read side by side do not begin a power of two apart, which would be the same place in caches.
struct MlaAttendScratch {
  static constexpr int64_t kVector = 16;
  static constexpr int64_t padded(int64_t count) {
    return (count + kVector - 1) / kVector * kVector;
  }
  constexpr MlaAttendScratch(int64_t num_heads, int64_t latent_dim, int64_t rope_dim)
      : heads(num_heads < kAttendTileHeads ? num_heads : kAttendTileHeads),
        latent_width(padded(latent_dim)),
        width(latent_width + padded(rope_dim)) {}

  int64_t heads;         // at most, of one tile
  int64_t latent_width;  // latent_dim, padded
  int64_t width;         // and then rope_dim, padded: of a query and of an unpacked key

  constexpr int64_t weight_stride() const { return kAttendSpanKeys + kVector; }
  constexpr int64_t sum_stride() const { return latent_width + kVector; }

  // [kAttendTileRows, heads, width]: absorbed queries; later a row's weighted latents
  constexpr int64_t queries() const { return 0; }
  // [heads, weight_stride]: a span's scores, then its weights
  constexpr int64_t weights() const { return kAttendTileRows * heads * width; }
  // [heads, sum_stride] each: weighted latents of all spans so far, and of one
  constexpr int64_t total() const { return weights() + heads * weight_stride(); }
  constexpr int64_t span() const { return total() + heads * sum_stride(); }
  // [kAttendBlockKeys, width]: unpacked rows
  constexpr int64_t block() const { return span() + heads * sum_stride(); }
  constexpr int64_t size() const { return block() + kAttendBlockKeys * width; }
};

// Floats of scratch for one member.
constexpr int64_t mla_attend_scratch_floats(int64_t heads, int64_t latent_dim, int64_t rope_dim) {
  return MlaAttendScratch(heads, latent_dim, rope_dim).size();
}

struct MlaAttendUse {
  struct Kind {
    WeightFormat kv_b;
    CacheType latents;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
  int64_t heads;
  int64_t latent_dim;
  int64_t rope_dim;
};

// Collective.
using MlaAttendFunction = void (*)(const ExecutionContext& context, const MlaAttendArgs& args);
using MlaAttendVariant = Variant<MlaAttendFunction, MlaAttendUse>;

std::span<const MlaAttendVariant> mla_attend_variants();

}  // namespace ingot::kernels
