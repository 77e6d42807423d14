#pragma once

#include <cstdint>
#include <span>

#include "kernels/execution_context.h"
#include "kernels/paged_cache.h"
#include "kernels/rope.h"
#include "kernels/variant.h"

namespace ingot::kernels {

// Which cached positions each row of a batch attends to. A row with at most `topk` keys (its own
// position included) takes all of them and has no list; any other has exactly `topk` positions in
// ascending order.
struct Selection {
  int64_t topk = 0;
  int32_t* positions = nullptr;  // [rows, topk]

  bool takes_all(int64_t num_keys) const { return num_keys <= topk; }
  const int32_t* row(int64_t index) const { return positions + index * topk; }
};

// The lightning indexer's rope and cache write (DeepSeek-V3.2, 2025): rotates the FIRST `rope_dim`
// values of every index query in place; layer-norms and rotates the key and stores it. Keys are
// stored from position 0 on, whether or not they are scored yet.
struct IndexKeyWriteArgs {
  BatchRows rows;
  const float* rope;  // rope_table's [rows, rope_dim]
  RopeStyle style;
  int64_t rope_dim;
  float* q;  // [rows, heads, dim], rotated in place
  int64_t heads;
  int64_t dim;
  const float* key;          // [rows, dim], as wk gives it
  const float* norm_weight;  // [dim]
  const float* norm_bias;    // [dim]
  CacheView keys;            // width dim
  float* scratch;            // [team, dim]
};

// The layer norm of index keys has its own epsilon, in no config.
inline constexpr float kIndexKeyNormEps = 1e-6f;

// Collective.
void index_key_write(const ExecutionContext& context, const IndexKeyWriteArgs& args);

// score(row, t) = sum over heads of gate[row, h] * relu(q[row, h] . key[t]) for t up to the row's
// position; the topk largest are selected, of equal scores the earliest position. Constant positive
// factors of the published formula are left out: they cannot change the order.
struct IndexSelectArgs {
  BatchRows rows;
  const float* q;      // [rows, heads, dim]
  const float* gates;  // [rows, heads]
  int64_t heads;
  int64_t dim;
  CacheView keys;   // width dim
  float* scores;    // [kIndexRowsPerPass, context_max]
  uint64_t* order;  // [min(team, kIndexRowsPerPass), context_max], for select_topk
  int64_t context_max;
  Selection selection;
};

// Rows whose scores are held at once.
inline constexpr int64_t kIndexRowsPerPass = 16;

struct IndexSelectUse {
  struct Kind {
    CacheType keys;
    bool operator==(const Kind&) const = default;
  };
  Kind kind;
  int64_t heads;
  int64_t dim;
};

// Collective.
using IndexSelectFunction = void (*)(const ExecutionContext& context, const IndexSelectArgs& args);
using IndexSelectVariant = Variant<IndexSelectFunction, IndexSelectUse>;

std::span<const IndexSelectVariant> index_select_variants();

}  // namespace ingot::kernels
