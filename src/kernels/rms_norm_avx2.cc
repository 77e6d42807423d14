#include <immintrin.h>

#include "kernels/rms_norm.h"

namespace ingot::kernels {
namespace {

inline double add_lanes(__m256d v) {
  const __m128d two = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
  return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

inline __m256d load_wide(const float* x) { return _mm256_cvtps_pd(_mm_loadu_ps(x)); }

inline double root(double value) { return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(value))); }

// Sum over a row: add(sum, values) takes four values into the sums of four lanes, add_one one that
// is left at the end. Four such sums run side by side, so that none waits for the one before.
template <typename Add, typename AddOne>
inline double sum_row(const float* x, int64_t cols, const Add& add, const AddOne& add_one) {
  __m256d sums[4];
  for (__m256d& sum : sums) sum = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + 16 <= cols; i += 16) {
    for (int64_t part = 0; part < 4; ++part) {
      sums[part] = add(sums[part], load_wide(x + i + 4 * part));
    }
  }
  for (; i + 4 <= cols; i += 4) sums[0] = add(sums[0], load_wide(x + i));
  double rest = 0;
  for (; i < cols; ++i) rest = add_one(rest, static_cast<double>(x[i]));
  return add_lanes(
             _mm256_add_pd(_mm256_add_pd(sums[0], sums[1]), _mm256_add_pd(sums[2], sums[3]))) +
         rest;
}

}  // namespace

void rms_norm_row_avx2(const float* x, const float* weight, int64_t cols, float eps, float* out) {
  const double squares = sum_row(
      x, cols, [](__m256d sum, __m256d v) { return _mm256_fmadd_pd(v, v, sum); },
      [](double sum, double v) { return sum + v * v; });
  const auto scale = static_cast<float>(
      1.0 / root(squares / static_cast<double>(cols) + static_cast<double>(eps)));
  const __m256 scales = _mm256_set1_ps(scale);
  int64_t i = 0;
  for (; i + 8 <= cols; i += 8) {
    const __m256 scaled = _mm256_mul_ps(_mm256_loadu_ps(x + i), scales);
    _mm256_storeu_ps(out + i, _mm256_mul_ps(scaled, _mm256_loadu_ps(weight + i)));
  }
  for (; i < cols; ++i) out[i] = x[i] * scale * weight[i];
}

void layer_norm_row_avx2(const float* x, const float* weight, const float* bias, int64_t cols,
                         float eps, float* out) {
  const auto count = static_cast<double>(cols);
  const double mean = sum_row(
                          x, cols, [](__m256d sum, __m256d v) { return _mm256_add_pd(sum, v); },
                          [](double sum, double v) { return sum + v; }) /
                      count;
  const __m256d means = _mm256_set1_pd(mean);
  const double squares = sum_row(
      x, cols,
      [means](__m256d sum, __m256d v) {
        const __m256d centred = _mm256_sub_pd(v, means);
        return _mm256_fmadd_pd(centred, centred, sum);
      },
      [mean](double sum, double v) { return sum + (v - mean) * (v - mean); });
  const double scale = 1.0 / root(squares / count + static_cast<double>(eps));
  const __m256d scales = _mm256_set1_pd(scale);
  int64_t i = 0;
  for (; i + 4 <= cols; i += 4) {
    const __m256d centred = _mm256_sub_pd(load_wide(x + i), means);
    const __m128 normed = _mm256_cvtpd_ps(_mm256_mul_pd(centred, scales));
    _mm_storeu_ps(out + i, _mm_fmadd_ps(normed, _mm_loadu_ps(weight + i), _mm_loadu_ps(bias + i)));
  }
  for (; i < cols; ++i) {
    const auto normed = static_cast<float>((static_cast<double>(x[i]) - mean) * scale);
    out[i] = __builtin_fmaf(normed, weight[i], bias[i]);
  }
}

}  // namespace ingot::kernels
