#include "kernels/index_select.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "kernels/dot_reference.h"
#include "kernels/rms_norm.h"

namespace ingot::kernels {
namespace {

// Keys of one row that are scored as one item of work.
constexpr int64_t kKeysPerItem = 512;

template <typename T>
void score_keys(const IndexSelectArgs& args, int64_t row, base::IndexRange keys, float* scores) {
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

// Scores of rows [first, last), shared out by row and span of keys.
template <typename T>
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
      score_keys<T>(args, row, {begin, std::min(begin + kKeysPerItem, count)}, scores);
    }
  }
}

template <typename T>
void index_select_reference(const ExecutionContext& context, const IndexSelectArgs& args) {
  const Selection& selection = args.selection;
  for (int64_t first = 0; first < args.rows.count; first += kIndexRowsPerPass) {
    const int64_t last = std::min(first + kIndexRowsPerPass, args.rows.count);
    score_rows<T>(context, args, first, last);
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

constexpr IndexSelectVariant kVariants[] = {
    {"index_select_f32_reference",
     Target::kReference,
     {CacheType::kF32},
     refuses_nothing<IndexSelectUse>,
     index_select_reference<float>},
    {"index_select_bf16_reference",
     Target::kReference,
     {CacheType::kBF16},
     refuses_nothing<IndexSelectUse>,
     index_select_reference<tensor::BFloat16>},
};

}  // namespace

std::span<const IndexSelectVariant> index_select_variants() { return kVariants; }

void index_key_write(const ExecutionContext& context, const IndexKeyWriteArgs& args) {
  CHECK(args.keys.width == args.dim);
  float* key = args.scratch + context.member() * args.dim;
  const base::IndexRange range = context.share(args.rows.count);
  for (int64_t row = range.begin; row < range.end; ++row) {
    const float* table = args.rope + row * args.rope_dim;
    for (int64_t head = 0; head < args.heads; ++head) {
      rope_row(args.q + (row * args.heads + head) * args.dim, table, args.rope_dim, args.style);
    }
    if (args.rows.writes[row] == 0) continue;
    layer_norm_row(args.key + row * args.dim, args.norm_weight, args.norm_bias, args.dim,
                   kIndexKeyNormEps, key);
    rope_row(key, table, args.rope_dim, args.style);
    store_cache_row(args.keys, args.rows.cache_row(row, args.rows.positions[row]), key);
  }
  context.barrier();
}

void select_topk(const float* scores, int64_t count, int64_t topk, uint64_t* order,
                 int32_t* positions) {
  CHECK(0 < topk && topk <= count);
  for (int64_t t = 0; t < count; ++t) {
    // Floats as unsigned words in the same order; adding zero makes the two zeros one.
    const uint32_t bits = std::bit_cast<uint32_t>(scores[t] + 0.0f);
    const uint32_t ascending = (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
    order[t] = static_cast<uint64_t>(~ascending) << 32 | static_cast<uint64_t>(t);
  }
  std::nth_element(order, order + topk - 1, order + count);
  for (int64_t i = 0; i < topk; ++i) positions[i] = static_cast<int32_t>(order[i] & 0xFFFFFFFF);
  std::sort(positions, positions + topk);
}

}  // namespace ingot::kernels
