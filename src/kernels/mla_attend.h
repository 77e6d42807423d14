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

// Floats of scratch for one member.
constexpr int64_t mla_attend_scratch_floats(int64_t latent_dim, int64_t rope_dim) {
  return 3 * latent_dim + rope_dim + kAttendSpanKeys;
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
