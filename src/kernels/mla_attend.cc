#include "kernels/mla_attend.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cache_rows.h"
#include "kernels/dot_reference.h"
#include "kernels/mla_attend_avx2.h"
#include "kernels/weight_rows.h"

namespace ingot::kernels {
namespace {

// Running softmax over spans: the maximum so far, the sum of exp(score - max) and the latents
// weighted by the same, [latent_dim].
struct Accumulator {
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  float* latent = nullptr;
};

// The scores and the weighted latent of one span of at most kAttendSpanKeys positions.
template <typename C>
void attend_span(const MlaAttendArgs& args, int64_t row, const float* query, base::IndexRange keys,
                 float* weights, Accumulator& span) {
  const bool all = args.selection.takes_all(args.rows.num_keys(row));
  const int32_t* selected = all ? nullptr : args.selection.row(row);
  const int64_t width = args.latent_dim + args.rope_dim;
  const auto cached = [&](int64_t index) {
    return C(args.latents, args.rows.cache_row(row, all ? index : selected[index]));
  };
  span.max = -std::numeric_limits<float>::infinity();
  for (int64_t i = keys.begin; i < keys.end; ++i) {
    const float score = args.scale * dot_reference(cached(i), PlainValues<float>{query}, width);
    weights[i - keys.begin] = score;
    span.max = std::max(span.max, score);
  }
  span.sum = 0;
  std::fill_n(span.latent, args.latent_dim, 0.0f);
  for (int64_t i = keys.begin; i < keys.end; ++i) {
    const float weight = std::exp(weights[i - keys.begin] - span.max);
    const C latent = cached(i);
    span.sum += weight;
    for (int64_t c = 0; c < args.latent_dim; ++c) span.latent[c] += weight * latent.value(c);
  }
}

void merge(const Accumulator& span, int64_t latent_dim, Accumulator& total) {
  const float max = std::max(total.max, span.max);
  const float old_factor = std::exp(total.max - max);
  const float new_factor = std::exp(span.max - max);
  total.max = max;
  total.sum = total.sum * old_factor + span.sum * new_factor;
  for (int64_t c = 0; c < latent_dim; ++c) {
    total.latent[c] = total.latent[c] * old_factor + span.latent[c] * new_factor;
  }
}

template <typename W, typename C>
void attend_head(const MlaAttendArgs& args, int64_t row, int64_t head, float* scratch) {
  const int64_t key_rows = head * (args.nope_dim + args.value_dim);
  const int64_t value_rows = key_rows + args.nope_dim;
  const float* q = args.q + (row * args.heads + head) * (args.nope_dim + args.rope_dim);

  float* query = scratch;  // absorbed query, then its rope part: laid out as a cache row is
  Accumulator span{.latent = query + args.latent_dim + args.rope_dim};
  Accumulator total{.latent = span.latent + args.latent_dim};
  float* weights = total.latent + args.latent_dim;
  std::fill_n(query, args.latent_dim, 0.0f);
  for (int64_t d = 0; d < args.nope_dim; ++d) {
    const W key_row(args.kv_b, key_rows + d);
    for (int64_t c = 0; c < args.latent_dim; ++c) query[c] += q[d] * key_row.value(c);
  }
  std::copy_n(q + args.nope_dim, args.rope_dim, query + args.latent_dim);

  std::fill_n(total.latent, args.latent_dim, 0.0f);
  const int64_t count = std::min(args.rows.num_keys(row), args.selection.topk);
  for (int64_t begin = 0; begin < count; begin += kAttendSpanKeys) {
    const int64_t end = std::min(begin + kAttendSpanKeys, count);
    attend_span<C>(args, row, query, {begin, end}, weights, span);
    merge(span, args.latent_dim, total);
  }
  for (int64_t c = 0; c < args.latent_dim; ++c) total.latent[c] /= total.sum;
  float* out = args.out + (row * args.heads + head) * args.value_dim;
  for (int64_t d = 0; d < args.value_dim; ++d) {
    const W value_row(args.kv_b, value_rows + d);
    out[d] = dot_reference(value_row, PlainValues<float>{total.latent}, args.latent_dim);
  }
}

template <typename W, typename C>
void mla_attend_reference(const ExecutionContext& context, const MlaAttendArgs& args) {
  float* scratch =
      args.scratch +
      context.member() * mla_attend_scratch_floats(args.heads, args.latent_dim, args.rope_dim);
  // Later rows have more keys: dealing items out in turn evens the load.
  for (int64_t item = context.member(); item < args.rows.count * args.heads;
       item += context.team_size()) {
    attend_head<W, C>(args, item / args.heads, item % args.heads, scratch);
  }
  context.barrier();
}

// kv_b is never quantized: its key half is summed over output rows, across whose scales no
// accumulator reaches.
template <typename W, typename C>
constexpr MlaAttendVariant reference(std::string_view name) {
  return {name,
          Target::kReference,
          {W::kFormat, C::kType},
          refuses_nothing<MlaAttendUse>,
          mla_attend_reference<W, C>};
}

#if defined(__x86_64__)
template <WeightFormat kKvB, CacheType kLatents>
constexpr MlaAttendVariant avx2(std::string_view name, MlaAttendFunction run) {
  return {name, Target::kAvx2, {kKvB, kLatents}, refuses_nothing<MlaAttendUse>, run};
}
#endif

constexpr MlaAttendVariant kVariants[] = {
#if defined(__x86_64__)
    avx2<WeightFormat::kF32, CacheType::kF32>("mla_attend_f32_avx2", mla_attend_f32_avx2),
    avx2<WeightFormat::kF16, CacheType::kF32>("mla_attend_f16_avx2", mla_attend_f16_avx2),
    avx2<WeightFormat::kBF16, CacheType::kF32>("mla_attend_bf16_avx2", mla_attend_bf16_avx2),
    avx2<WeightFormat::kF32, CacheType::kBF16>("mla_attend_f32_bf16_avx2",
                                               mla_attend_f32_bf16_avx2),
    avx2<WeightFormat::kF16, CacheType::kBF16>("mla_attend_f16_bf16_avx2",
                                               mla_attend_f16_bf16_avx2),
    avx2<WeightFormat::kBF16, CacheType::kBF16>("mla_attend_bf16_bf16_avx2",
                                                mla_attend_bf16_bf16_avx2),
    avx2<WeightFormat::kF32, CacheType::kFp8>("mla_attend_f32_fp8_avx2", mla_attend_f32_fp8_avx2),
    avx2<WeightFormat::kF16, CacheType::kFp8>("mla_attend_f16_fp8_avx2", mla_attend_f16_fp8_avx2),
    avx2<WeightFormat::kBF16, CacheType::kFp8>("mla_attend_bf16_fp8_avx2",
                                               mla_attend_bf16_fp8_avx2),
#endif
    reference<F32WeightRow, F32CacheRow>("mla_attend_f32_reference"),
    reference<F16WeightRow, F32CacheRow>("mla_attend_f16_reference"),
    reference<BF16WeightRow, F32CacheRow>("mla_attend_bf16_reference"),
    reference<F32WeightRow, BF16CacheRow>("mla_attend_f32_bf16_reference"),
    reference<F16WeightRow, BF16CacheRow>("mla_attend_f16_bf16_reference"),
    reference<BF16WeightRow, BF16CacheRow>("mla_attend_bf16_bf16_reference"),
    reference<F32WeightRow, Fp8CacheRow>("mla_attend_f32_fp8_reference"),
    reference<F16WeightRow, Fp8CacheRow>("mla_attend_f16_fp8_reference"),
    reference<BF16WeightRow, Fp8CacheRow>("mla_attend_bf16_fp8_reference"),
};

}  // namespace

std::span<const MlaAttendVariant> mla_attend_variants() { return kVariants; }

}  // namespace ingot::kernels
