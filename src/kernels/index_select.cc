#include "kernels/index_select.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/check.h"
#include "kernels/dot_reference.h"
#include "kernels/index_select_avx2.h"
#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

// Keys of one row that are scored as one item of work.
constexpr int64_t kKeysPerItem = 512;

template <typename T>
void score_keys_reference(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                          float* scores) {
  const auto* cache = static_cast<const T*>(args.keys.data);
  const float* q = args.q + row * args.heads * args.dim;
  const float* gates = args.gates + row * args.heads;
  for (int64_t t = keys.begin; t < keys.end; ++t) {
    const PlainValues<T> key{cache + args.rows.cache_row(row, t) * args.dim};
    float score = 0;
    for (int64_t head = 0; head < args.heads; ++head) {
      const PlainValues<float> query{q + head * args.dim};
      score += gates[head] * std::max(0.0f, dot_reference(key, query, args.dim));
    }
    scores[t] = score;
  }
}

// The scores of one row for the keys at `keys`, at scores[keys.begin] and on.
using ScoreKeys = void (*)(const IndexSelectArgs& args, int64_t row, base::IndexRange keys,
                           float* scores);

// Scores of rows [first, last), shared out by row and span of keys.
template <ScoreKeys kScoreKeys>
void score_rows(const ExecutionContext& context, const IndexSelectArgs& args, int64_t first,
                int64_t last) {
  const int64_t spans = (args.context_max + kKeysPerItem - 1) / kKeysPerItem;
  int64_t item = 0;
  for (int64_t row = first; row < last; ++row) {
    const int64_t count = args.rows.num_keys(row);
    CHECK(count <= args.context_max);
    if (args.selection.takes_all(count)) continue;
    float* scores = args.scores + (row - first) * args.context_max;
    for (int64_t span = 0; span < spans && span * kKeysPerItem < count; ++span, ++item) {
      if (item % context.team_size() != context.member()) continue;
      const int64_t begin = span * kKeysPerItem;
      kScoreKeys(args, row, {begin, std::min(begin + kKeysPerItem, count)}, scores);
    }
  }
}

template <ScoreKeys kScoreKeys>
void index_select(const ExecutionContext& context, const IndexSelectArgs& args) {
  const Selection& selection = args.selection;
  const SelectTopk select_topk = context.rows().select_topk;
  for (int64_t first = 0; first < args.rows.count; first += kIndexRowsPerPass) {
    const int64_t last = std::min(first + kIndexRowsPerPass, args.rows.count);
    score_rows<kScoreKeys>(context, args, first, last);
    context.barrier();
    const base::IndexRange mine = context.share(last - first);
    for (int64_t row = first + mine.begin; row < first + mine.end; ++row) {
      const int64_t count = args.rows.num_keys(row);
      if (selection.takes_all(count)) continue;
      select_topk(args.scores + (row - first) * args.context_max, count, selection.topk,
                  args.order + context.member() * args.context_max,
                  selection.positions + row * selection.topk);
    }
    context.barrier();
  }
}

#if defined(__x86_64__)
std::string too_large_for_avx2(const IndexSelectUse& use) {
  if (use.dim > kIndexDimMaxAvx2) {
    return fmt::format("{} values a head, over {}", use.dim, kIndexDimMaxAvx2);
  }
  const int64_t floats = (use.heads + 15) / 16 * 16 * use.dim;
  if (floats <= kIndexQueryFloatsMaxAvx2) return {};
  return fmt::format("{} heads of {}, over {} values together", use.heads, use.dim,
                     kIndexQueryFloatsMaxAvx2);
}
#endif

constexpr IndexSelectVariant kVariants[] = {
#if defined(__x86_64__)
    {"index_select_f32_avx2",
     Target::kAvx2,
     {CacheType::kF32},
     too_large_for_avx2,
     index_select<score_keys_f32_avx2>},
    {"index_select_bf16_avx2",
     Target::kAvx2,
     {CacheType::kBF16},
     too_large_for_avx2,
     index_select<score_keys_bf16_avx2>},
#endif
    {"index_select_f32_reference",
     Target::kReference,
     {CacheType::kF32},
     refuses_nothing<IndexSelectUse>,
     index_select<score_keys_reference<float>>},
    {"index_select_bf16_reference",
     Target::kReference,
     {CacheType::kBF16},
     refuses_nothing<IndexSelectUse>,
     index_select<score_keys_reference<tensor::BFloat16>>},
};

}  // namespace

std::span<const IndexSelectVariant> index_select_variants() { return kVariants; }

void index_key_write(const ExecutionContext& context, const IndexKeyWriteArgs& args) {
  CHECK(args.keys.width == args.dim);
  const RowOperations& rows = context.rows();
  const StoreCacheRow store = rows.store(args.keys.type);
  float* key = args.scratch + context.member() * args.dim;
  const base::IndexRange range = context.share(args.rows.count);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const float* table = args.rope + row * args.rope_dim;
    for (int64_t head = 0; head < args.heads; ++head) {
      rows.rotate(args.q + (row * args.heads + head) * args.dim, table, args.rope_dim, args.style);
    }
    if (args.rows.writes[row] == 0) continue;
    rows.layer_norm(args.key + row * args.dim, args.norm_weight, args.norm_bias, args.dim,
                    kIndexKeyNormEps, key);
    rows.rotate(key, table, args.rope_dim, args.style);
    store(args.keys, args.rows.cache_row(row, args.rows.positions[row]), key);
  }
  context.barrier();
}

}  // namespace ingot::kernels
