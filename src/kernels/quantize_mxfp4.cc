#include "kernels/quantize_mxfp4.h"

#include <algorithm>
#include <cmath>

#include "kernels/quantize_mxfp4_avx2.h"
#include "kernels/quantize_mxfp4_reference.h"

namespace ingot::kernels {
namespace {

using enum ScaleSearch;
using enum tensor::DType;
constexpr auto any_shape = refuses_nothing<QuantizeMxfp4Use>;

template <typename T, ScaleSearch kSearch>
constexpr QuantizeMxfp4Variant reference(std::string_view name, tensor::DType dtype) {
  return {
      name, Target::kReference, {dtype, kSearch}, any_shape, quantize_mxfp4_reference<T, kSearch>};
}

#if defined(__x86_64__)
constexpr QuantizeMxfp4Variant avx2(std::string_view name, tensor::DType dtype, ScaleSearch search,
                                    QuantizeMxfp4Function run) {
  return {name, Target::kAvx2, {dtype, search}, any_shape, run};
}
#endif

constexpr QuantizeMxfp4Variant kVariants[] = {
#if defined(__x86_64__)
    avx2("quantize_mxfp4_f32_avx2", kF32, kEven, quantize_mxfp4_f32_avx2),
    avx2("quantize_mxfp4_f16_avx2", kF16, kEven, quantize_mxfp4_f16_avx2),
    avx2("quantize_mxfp4_bf16_avx2", kBF16, kEven, quantize_mxfp4_bf16_avx2),
    avx2("quantize_mxfp4_f32_search_avx2", kF32, kSquaredError, quantize_mxfp4_f32_search_avx2),
    avx2("quantize_mxfp4_f16_search_avx2", kF16, kSquaredError, quantize_mxfp4_f16_search_avx2),
    avx2("quantize_mxfp4_bf16_search_avx2", kBF16, kSquaredError, quantize_mxfp4_bf16_search_avx2),
#endif
    reference<float, kEven>("quantize_mxfp4_f32_reference", kF32),
    reference<tensor::Float16, kEven>("quantize_mxfp4_f16_reference", kF16),
    reference<tensor::BFloat16, kEven>("quantize_mxfp4_bf16_reference", kBF16),
    reference<float, kSquaredError>("quantize_mxfp4_f32_search_reference", kF32),
    reference<tensor::Float16, kSquaredError>("quantize_mxfp4_f16_search_reference", kF16),
    reference<tensor::BFloat16, kSquaredError>("quantize_mxfp4_bf16_search_reference", kBF16),
};

}  // namespace

void RoundingStatistics::add(const RoundingStatistics& part) {
  num_values += part.num_values;
  num_blocks += part.num_blocks;
  num_zero_blocks += part.num_zero_blocks;
  num_clipped += part.num_clipped;
  sum_squares += part.sum_squares;
  sum_squared_errors += part.sum_squared_errors;
  error_max = std::max(error_max, part.error_max);
  magnitude_max = std::max(magnitude_max, part.magnitude_max);
  for (size_t byte = 0; byte < scale_bytes.size(); ++byte) {
    scale_bytes[byte] += part.scale_bytes[byte];
  }
}

double RoundingStatistics::relative_rms_error() const {
  return sum_squares > 0 ? std::sqrt(sum_squared_errors / sum_squares) : 0;
}

std::span<const QuantizeMxfp4Variant> quantize_mxfp4_variants() { return kVariants; }

}  // namespace ingot::kernels
