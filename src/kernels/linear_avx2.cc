#include "kernels/linear_avx2.h"

#include <immintrin.h>

#include "kernels/lanes_avx2.h"

namespace ingot::kernels {
namespace {

template <typename T>
inline __m256 load_part(const typename T::Element* p, int64_t count) {
  alignas(32) float values[8] = {};
  for (int64_t i = 0; i < count; ++i) values[i] = T::one(p[i]);
  return _mm256_load_ps(values);
}

inline float add_lanes(__m256 v) {
  __m128 sum = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  sum = _mm_add_ps(sum, _mm_movehl_ps(sum, sum));
  return _mm_cvtss_f32(_mm_add_ss(sum, _mm_movehdup_ps(sum)));
}

// kRows x kOuts outputs at once: every loaded vector is used several times.
template <typename W, typename A, int kRows, int kOuts>
inline void tile(const typename A::Element* x, const typename W::Element* w, int64_t in, float* y,
                 int64_t y_stride, bool add) {
  __m256 sum[kRows][kOuts];
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) sum[r][o] = _mm256_setzero_ps();
  }
  const auto step = [&](auto&& load_w, auto&& load_x) {
    __m256 wide[kOuts];
    for (int o = 0; o < kOuts; ++o) wide[o] = load_w(w + o * in);
    for (int r = 0; r < kRows; ++r) {
      const __m256 value = load_x(x + r * in);
      for (int o = 0; o < kOuts; ++o) sum[r][o] = _mm256_fmadd_ps(wide[o], value, sum[r][o]);
    }
  };
  int64_t k = 0;
  for (; k + 8 <= in; k += 8) {
    step([&](const auto* p) { return W::load(p + k); },
         [&](const auto* p) { return A::load(p + k); });
  }
  if (k < in) {
    step([&](const auto* p) { return load_part<W>(p + k, in - k); },
         [&](const auto* p) { return load_part<A>(p + k, in - k); });
  }
  for (int r = 0; r < kRows; ++r) {
    for (int o = 0; o < kOuts; ++o) {
      float& out = y[r * y_stride + o];
      const float value = add_lanes(sum[r][o]);
      out = add ? out + value : value;
    }
  }
}

template <typename W, typename A, int kOuts>
inline void tile_rows(const typename A::Element* x, const typename W::Element* w,
                      const LinearArgs& args, float* y) {
  const int64_t in = args.weight.cols;
  const bool add = args.output == Output::kAdd;
  int64_t row = 0;
  for (; row + 2 <= args.x.rows; row += 2) {
    tile<W, A, 2, kOuts>(x + row * in, w, in, y + row * args.y_stride, args.y_stride, add);
  }
  if (row < args.x.rows) {
    tile<W, A, 1, kOuts>(x + row * in, w, in, y + row * args.y_stride, args.y_stride, add);
  }
}

template <typename W, typename A>
void linear(const ExecutionContext& context, const LinearArgs& args) {
  const auto* x = static_cast<const typename A::Element*>(args.x.data);
  const auto* w = static_cast<const typename W::Element*>(args.weight.data);
  const int64_t in = args.weight.cols;
  const base::IndexRange range = context.share(args.weight.rows, 4);
  int64_t o = range.begin;
  for (; o + 4 <= range.end; o += 4) tile_rows<W, A, 4>(x, w + o * in, args, args.y + o);
  for (; o < range.end; ++o) tile_rows<W, A, 1>(x, w + o * in, args, args.y + o);
  context.barrier();
}

}  // namespace

void linear_f32_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<F32Lanes, F32Lanes>(context, args);
}
void linear_f16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<F16Lanes, F32Lanes>(context, args);
}
void linear_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<BF16Lanes, F32Lanes>(context, args);
}
void linear_bf16_bf16_avx2(const ExecutionContext& context, const LinearArgs& args) {
  linear<BF16Lanes, BF16Lanes>(context, args);
}

}  // namespace ingot::kernels
