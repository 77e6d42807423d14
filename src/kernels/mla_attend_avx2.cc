#include "kernels/mla_attend_avx2.h"

#include <immintrin.h>

#include <cmath>
#include <cstring>

#include "kernels/attend_division.h"
#include "kernels/exp_avx2.h"
#include "kernels/row_products_avx2.h"

namespace ingot::kernels {
namespace {

constexpr int64_t kBlock = kAttendBlockKeys;

struct Task {
  const MlaAttendArgs& args;
  MlaAttendScratch shape;
  float* scratch;
};

// Unpacks `count` values and fills up with zeros to a whole vector.
template <typename Lanes>
inline void widen(const typename Lanes::Element* from, int64_t count, float* to) {
  int64_t k = 0;
  for (; k + 8 <= count; k += 8) _mm256_storeu_ps(to + k, Lanes::load(from + k));
  for (; k < count; ++k) to[k] = Lanes::one(from[k]);
  for (; k % kRowStep != 0; ++k) to[k] = 0;
}

// Sixteen e4m3 codes, none of them NaN (no cached row has one). The seven bits below the sign,
// moved to where f16 has them, mean 2^-8 of what they meant, which `scale` makes up for; those are
// exact, subnormals too.
inline void widen_e4m3(__m128i codes, __m256 scale, float* to) {
  const __m256i bits = _mm256_and_si256(_mm256_slli_epi16(_mm256_cvtepi8_epi16(codes), 7),
                                        _mm256_set1_epi16(static_cast<short>(0xBFFF)));
  const __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(bits));
  const __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(bits, 1));
  _mm256_storeu_ps(to, _mm256_mul_ps(low, scale));
  _mm256_storeu_ps(to + 8, _mm256_mul_ps(high, scale));
}

// Where a row's values can be multiplied: a type each for rows of kv_b and of the cache. get()
// gives the row at `stored`, if need be unpacked into `unpacked`.

template <typename R>
struct InPlace {
  using Row = R;
  static constexpr bool kInPlace = true;
  static const typename R::Element* get(const std::byte* stored, const Task&, float*) {
    return reinterpret_cast<const typename R::Element*>(stored);
  }
};

template <typename Lanes>
struct WideWeight {
  using Row = F32Row;
  static constexpr bool kInPlace = false;
  static const float* get(const std::byte* stored, const Task& task, float* unpacked) {
    widen<Lanes>(reinterpret_cast<const typename Lanes::Element*>(stored), task.args.latent_dim,
                 unpacked);
    return unpacked;
  }
};

template <typename Lanes>
struct WideKey {
  using Row = F32Row;
  static constexpr bool kInPlace = false;
  static const float* get(const std::byte* stored, const Task& task, float* unpacked) {
    const auto* values = reinterpret_cast<const typename Lanes::Element*>(stored);
    widen<Lanes>(values, task.args.latent_dim, unpacked);
    widen<Lanes>(values + task.args.latent_dim, task.args.rope_dim,
                 unpacked + task.shape.latent_width);
    return unpacked;
  }
};

struct Fp8Key {
  using Row = F32Row;
  static constexpr bool kInPlace = false;
  static const float* get(const std::byte* stored, const Task& task, float* unpacked) {
    const int64_t latent_dim = task.args.latent_dim;
    const Fp8CacheRowLayout layout =
        fp8_cache_row_layout(latent_dim + task.args.rope_dim, latent_dim);
    for (int64_t k = 0; k < latent_dim; k += kRowStep) {
      float scale;
      std::memcpy(&scale, stored + layout.scales + k / kFp8CacheGroup * 4, sizeof scale);
      const std::byte* codes = stored + k;
      std::byte last[kRowStep] = {};
      if (k + kRowStep > latent_dim) {
        std::memcpy(last, codes, static_cast<size_t>(latent_dim - k));
        codes = last;
      }
      widen_e4m3(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes)),
                 _mm256_set1_ps(scale * 0x1p8f), unpacked + k);
    }
    widen<BF16Lanes>(reinterpret_cast<const stored_bits*>(stored + layout.rope), task.args.rope_dim,
                     unpacked + task.shape.latent_width);
    return unpacked;
  }
};

// `count` rows, of which stored(i) gives the place of row i, and after them up to `reach` those
// that are wanted next.
template <typename Stored>
struct StoredRows {
  int64_t count;
  int64_t reach;
  int64_t row_bytes;
  Stored stored;
};

template <typename Row>
struct Block {
  int64_t first;  // which of the rows is its first
  int64_t size;
  const typename Row::Element* rows[kBlock];
  Ahead ahead;  // the next block
};

// Calls visit(block) for block after block.
template <typename Source, typename Stored, typename Visit>
inline void for_blocks(const Task& task, const StoredRows<Stored>& from, const Visit& visit) {
  constexpr int64_t kUnpackAhead = 4;
  float* unpacked = task.scratch + task.shape.block();
  for (int64_t first = 0; first < from.count; first += kBlock) {
    const std::byte* next[kBlock];
    Block<typename Source::Row> block;
    block.first = first;
    block.size = first + kBlock < from.count ? kBlock : from.count - first;
    block.ahead = {.rows = next, .count = 0, .row_bytes = from.row_bytes};
    for (int64_t i = 0; i < block.size; ++i) {
      if constexpr (!Source::kInPlace) {
        if (first + i + kUnpackAhead < from.reach) {
          fetch(from.stored(first + i + kUnpackAhead), 0, from.row_bytes);
        }
      }
      block.rows[i] = Source::get(from.stored(first + i), task, unpacked + i * task.shape.width);
    }
    if constexpr (Source::kInPlace) {
      for (int64_t i = first + block.size; i < from.reach && block.ahead.count < kBlock; ++i) {
        next[block.ahead.count++] = from.stored(i);
      }
    }
    visit(block);
  }
}

// One tile: rows [first_row, first_row + num_rows) and heads [first_head, first_head + num_heads).
struct Tile {
  int64_t first_row;
  int64_t num_rows;
  int64_t first_head;
  int64_t num_heads;

  // The query of a row and a head, both counted from the first.
  float* query(const Task& task, int64_t row, int64_t head) const {
    return task.scratch + task.shape.queries() + (row * num_heads + head) * task.shape.width;
  }
  int64_t row_stride(const Task& task) const { return num_heads * task.shape.width; }
};

// Of kv_b, rows [begin, begin + count) of a head; next are the same rows of the next head.
template <typename W>
inline auto weight_rows(const MlaAttendArgs& args, const Tile& tile, int64_t head, int64_t begin,
                        int64_t count) {
  const int64_t head_rows = args.nope_dim + args.value_dim;
  const int64_t row_bytes = args.latent_dim * static_cast<int64_t>(sizeof(W));
  const std::byte* first = static_cast<const std::byte*>(args.kv_b.data) +
                           ((tile.first_head + head) * head_rows + begin) * row_bytes;
  const auto stored = [=](int64_t i) {
    return first + (i < count ? i : i - count + head_rows) * row_bytes;
  };
  return StoredRows{.count = count,
                    .reach = head + 1 < tile.num_heads ? 2 * count : count,
                    .row_bytes = row_bytes,
                    .stored = stored};
}

// Queries as they meet cached rows: absorbed, then the rope part, in the keys' order.
template <typename Weights, typename Keys, typename W>
inline void absorb(const Task& task, const Tile& tile) {
  const MlaAttendArgs& args = task.args;
  const int64_t q_dim = args.nope_dim + args.rope_dim;
  const int64_t q_stride = args.heads * q_dim;
  for (int64_t h = 0; h < tile.num_heads; ++h) {
    const float* q = args.q + (tile.first_row * args.heads + tile.first_head + h) * q_dim;
    for_blocks<Weights>(task, weight_rows<W>(args, tile, h, 0, args.nope_dim),
                        [&](const Block<typename Weights::Row>& block) {
                          add_weighted<typename Weights::Row>(
                              {.weights = {q + block.first, q_stride, tile.num_rows},
                               .rows = block.rows,
                               .num_rows = block.size,
                               .fresh = block.first == 0,
                               .sums = tile.query(task, 0, h),
                               .stride = tile.row_stride(task),
                               .ahead = block.ahead},
                              task.shape.latent_width);
                        });
    for (int64_t r = 0; r < tile.num_rows; ++r) {
      float* query = tile.query(task, r, h);
      float* rope = query + task.shape.latent_width;
      change_order<typename Weights::Row, typename Keys::Row>(query, task.shape.latent_width);
      widen<F32Lanes>(q + r * q_stride + args.nope_dim, args.rope_dim, rope);
      change_order<F32Row, typename Keys::Row>(rope, task.shape.width - task.shape.latent_width);
    }
  }
}

// What is merged over spans, of each head.
struct Softmax {
  float max[kAttendTileHeads];
  float sum[kAttendTileHeads];
};

inline float lowest_lane(__m256 v) { return _mm_cvtss_f32(_mm256_castps256_ps128(v)); }

// Lanes l and l + 4, then l and l + 2, then the last two.
template <typename Combine>
inline float combine_lanes(__m256 v, const Combine& combine) {
  __m256 all = combine(v, _mm256_permute2f128_ps(v, v, 1));
  all = combine(all, _mm256_permute_ps(all, 0b01'00'11'10));
  return lowest_lane(combine(all, _mm256_permute_ps(all, 0b10'11'00'01)));
}

// Turns scores into exp(scale * score - max). They have room up to a multiple of eight.
inline void weigh(float* scores, int64_t count, float scale, float& max, float& sum) {
  const __m256 minus_infinity = _mm256_set1_ps(-INFINITY);
  const __m256 lane = _mm256_setr_ps(0, 1, 2, 3, 4, 5, 6, 7);
  __m256 maxima = minus_infinity;
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 present =
        _mm256_cmp_ps(lane, _mm256_set1_ps(static_cast<float>(count - i)), _CMP_LT_OQ);
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(scale));
    const __m256 score = _mm256_blendv_ps(minus_infinity, scaled, present);
    _mm256_storeu_ps(scores + i, score);
    maxima = _mm256_max_ps(maxima, score);
  }
  max = combine_lanes(maxima, [](__m256 a, __m256 b) { return _mm256_max_ps(a, b); });
  __m256 sums = _mm256_setzero_ps();
  for (int64_t i = 0; i < count; i += 8) {
    const __m256 weight =
        exp_lanes(_mm256_sub_ps(_mm256_loadu_ps(scores + i), _mm256_set1_ps(max)));
    _mm256_storeu_ps(scores + i, weight);
    sums = _mm256_add_ps(sums, weight);
  }
  sum = combine_lanes(sums, [](__m256 a, __m256 b) { return _mm256_add_ps(a, b); });
}

// Adds a span to what came before it.
inline void merge(const Task& task, int64_t head, const Softmax& span, Softmax& total) {
  const float max = total.max[head] < span.max[head] ? span.max[head] : total.max[head];
  const __m256 old_factor = exp_lanes(_mm256_set1_ps(total.max[head] - max));
  const __m256 new_factor = exp_lanes(_mm256_set1_ps(span.max[head] - max));
  total.max[head] = max;
  total.sum[head] = total.sum[head] * lowest_lane(old_factor);
  total.sum[head] = total.sum[head] + span.sum[head] * lowest_lane(new_factor);
  float* totals = task.scratch + task.shape.total() + head * task.shape.sum_stride();
  const float* spans = task.scratch + task.shape.span() + head * task.shape.sum_stride();
  for (int64_t k = 0; k < task.shape.latent_width; k += 8) {
    const __m256 old_part = _mm256_mul_ps(_mm256_loadu_ps(totals + k), old_factor);
    const __m256 new_part = _mm256_mul_ps(_mm256_loadu_ps(spans + k), new_factor);
    _mm256_storeu_ps(totals + k, _mm256_add_ps(old_part, new_part));
  }
}

// Scores, weights and weighted latents of a span, the latter to `sums`. Of `keys`, num_keys are its
// own and the others, up to `reach`, the next span's.
template <typename Keys>
inline void attend_span(const Task& task, const Tile& tile, int64_t row,
                        const std::byte* const* keys, int64_t num_keys, int64_t reach,
                        Softmax& softmax, float* sums) {
  using Row = typename Keys::Row;
  const MlaAttendScratch& shape = task.shape;
  float* weights = task.scratch + shape.weights();
  StoredRows rows{.count = num_keys,
                  .reach = reach,
                  .row_bytes = task.args.latents.row_bytes(),
                  .stored = [keys](int64_t i) { return keys[i]; }};
  for_blocks<Keys>(task, rows, [&](const Block<Row>& block) {
    dots<Row>({.queries = {tile.query(task, row, 0), shape.width, tile.num_heads},
               .rows = block.rows,
               .num_rows = block.size,
               .width = shape.width,
               .out = weights + block.first,
               .out_stride = shape.weight_stride(),
               .ahead = block.ahead});
  });
  for (int64_t h = 0; h < tile.num_heads; ++h) {
    weigh(weights + h * shape.weight_stride(), num_keys, task.args.scale, softmax.max[h],
          softmax.sum[h]);
  }
  rows.reach = num_keys;
  for_blocks<Keys>(task, rows, [&](const Block<Row>& block) {
    add_weighted<Row>({.weights = {weights + block.first, shape.weight_stride(), tile.num_heads},
                       .rows = block.rows,
                       .num_rows = block.size,
                       .fresh = block.first == 0,
                       .sums = sums,
                       .stride = shape.sum_stride(),
                       .ahead = block.ahead},
                      shape.latent_width);
  });
}

// Of one row and all of the tile's heads; the weighted latents take the place of its queries, in
// the order of kv_b's rows.
template <typename Weights, typename Keys>
inline void attend_row(const Task& task, const Tile& tile, int64_t row) {
  const MlaAttendArgs& args = task.args;
  const MlaAttendScratch& shape = task.shape;
  const int64_t batch_row = tile.first_row + row;
  const int64_t num_keys = args.rows.num_keys(batch_row);
  const bool all = args.selection.takes_all(num_keys);
  const int32_t* selected = all ? nullptr : args.selection.row(batch_row);
  const int64_t count = all ? num_keys : args.selection.topk;
  const auto* data = static_cast<const std::byte*>(args.latents.data);
  const int64_t row_bytes = args.latents.row_bytes();
  float* totals = task.scratch + shape.total();
  Softmax total;
  for (int64_t begin = 0; begin < count; begin += kAttendSpanKeys) {
    const int64_t size = begin + kAttendSpanKeys < count ? kAttendSpanKeys : count - begin;
    const int64_t reach = size + kBlock < count - begin ? size + kBlock : count - begin;
    const std::byte* keys[kAttendSpanKeys + kBlock];
    for (int64_t i = 0; i < reach; ++i) {
      const int64_t position = all ? begin + i : selected[begin + i];
      keys[i] = data + args.rows.cache_row(batch_row, position) * row_bytes;
    }
    if (begin == 0) {
      attend_span<Keys>(task, tile, row, keys, size, reach, total, totals);
      continue;
    }
    Softmax span;
    attend_span<Keys>(task, tile, row, keys, size, reach, span, task.scratch + shape.span());
    for (int64_t h = 0; h < tile.num_heads; ++h) merge(task, h, span, total);
  }
  for (int64_t h = 0; h < tile.num_heads; ++h) {
    const __m256 factor = _mm256_set1_ps(1 / total.sum[h]);
    float* out = tile.query(task, row, h);
    for (int64_t k = 0; k < shape.latent_width; k += 8) {
      const __m256 sum = _mm256_loadu_ps(totals + h * shape.sum_stride() + k);
      _mm256_storeu_ps(out + k, _mm256_mul_ps(sum, factor));
    }
    change_order<typename Keys::Row, typename Weights::Row>(out, shape.latent_width);
  }
}

template <typename Weights, typename W>
inline void project_values(const Task& task, const Tile& tile) {
  const MlaAttendArgs& args = task.args;
  for (int64_t h = 0; h < tile.num_heads; ++h) {
    const int64_t head = tile.first_head + h;
    float* out = args.out + (tile.first_row * args.heads + head) * args.value_dim;
    for_blocks<Weights>(
        task, weight_rows<W>(args, tile, h, args.nope_dim, args.value_dim),
        [&](const Block<typename Weights::Row>& block) {
          dots<typename Weights::Row>(
              {.queries = {tile.query(task, 0, h), tile.row_stride(task), tile.num_rows},
               .rows = block.rows,
               .num_rows = block.size,
               .width = task.shape.latent_width,
               .out = out + block.first,
               .out_stride = args.heads * args.value_dim,
               .ahead = block.ahead});
        });
  }
}

template <typename Weights, typename Keys, typename W>
inline void attend(const ExecutionContext& context, const MlaAttendArgs& args,
                   double head_overhead) {
  const MlaAttendScratch shape(args.heads, args.latent_dim, args.rope_dim);
  const Task task{args, shape, args.scratch + context.member() * shape.size()};
  const AttendDivision division = divide_attention(args, context.team_size(), head_overhead);
  const base::IndexRange heads = division.heads(context.member(), args.heads);
  for (int64_t first = heads.begin; first < heads.end; first += shape.heads) {
    const int64_t num_heads = first + shape.heads < heads.end ? shape.heads : heads.end - first;
    for (int64_t i = 0; i < division.num_tiles(args.rows.count); ++i) {
      if (!division.owns(context.member(), i)) continue;
      const int64_t row = i * division.tile_rows;
      const int64_t left = args.rows.count - row;
      const Tile tile{.first_row = row,
                      .num_rows = left < division.tile_rows ? left : division.tile_rows,
                      .first_head = first,
                      .num_heads = num_heads};
      absorb<Weights, Keys, W>(task, tile);
      for (int64_t r = 0; r < tile.num_rows; ++r) attend_row<Weights, Keys>(task, tile, r);
      project_values<Weights, W>(task, tile);
    }
  }
  context.barrier();
}

// Unpacking a key takes as long as a few heads do with it.
constexpr double kUnpackedHeads = 4;
constexpr double kInPlaceHeads = 0.25;

// kv_b's rows as R in place or through Lanes, the cache's likewise.
template <typename R, typename Lanes, typename C, typename CacheLanes>
inline void attend_plain(const ExecutionContext& context, const MlaAttendArgs& args) {
  using Element = typename R::Element;
  if (args.latent_dim % kRowStep == 0 && args.rope_dim % kRowStep == 0) {
    attend<InPlace<R>, InPlace<C>, Element>(context, args, kInPlaceHeads);
  } else {
    attend<WideWeight<Lanes>, WideKey<CacheLanes>, Element>(context, args, kUnpackedHeads);
  }
}

template <typename R, typename Lanes>
inline void attend_fp8(const ExecutionContext& context, const MlaAttendArgs& args) {
  using Element = typename R::Element;
  if (args.latent_dim % kRowStep == 0) {
    attend<InPlace<R>, Fp8Key, Element>(context, args, kUnpackedHeads);
  } else {
    attend<WideWeight<Lanes>, Fp8Key, Element>(context, args, kUnpackedHeads);
  }
}

}  // namespace

void mla_attend_f32_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<F32Row, F32Lanes, F32Row, F32Lanes>(context, args);
}
void mla_attend_f16_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<F16Row, F16Lanes, F32Row, F32Lanes>(context, args);
}
void mla_attend_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<BF16Row, BF16Lanes, F32Row, F32Lanes>(context, args);
}
void mla_attend_f32_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<F32Row, F32Lanes, BF16Row, BF16Lanes>(context, args);
}
void mla_attend_f16_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<F16Row, F16Lanes, BF16Row, BF16Lanes>(context, args);
}
void mla_attend_bf16_bf16_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_plain<BF16Row, BF16Lanes, BF16Row, BF16Lanes>(context, args);
}
void mla_attend_f32_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_fp8<F32Row, F32Lanes>(context, args);
}
void mla_attend_f16_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_fp8<F16Row, F16Lanes>(context, args);
}
void mla_attend_bf16_fp8_avx2(const ExecutionContext& context, const MlaAttendArgs& args) {
  attend_fp8<BF16Row, BF16Lanes>(context, args);
}

}  // namespace ingot::kernels
