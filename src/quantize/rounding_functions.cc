#include "quantize/rounding_functions.h"

#include "base/check.h"

namespace ingot::quantize {
namespace {

using tensor::DType;

constexpr std::array kDTypes = {DType::kF32, DType::kF16, DType::kBF16};

size_t index_of(DType dtype) {
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    if (kDTypes[i] == dtype) return i;
  }
  CHECK(false, tensor::name(dtype));
  return 0;
}

template <typename Variants, typename Use>
auto chosen(const Variants& variants, const Use& use, kernels::Target target) {
  kernels::LedgerEntry entry;
  const auto* variant = kernels::select_variant(variants, use, target, entry);
  CHECK(variant != nullptr, "the reference takes everything");
  return variant->run;
}

}  // namespace

RoundingFunctions RoundingFunctions::choose(kernels::ScaleSearch search, kernels::Target target) {
  RoundingFunctions functions;
  for (size_t i = 0; i < kDTypes.size(); ++i) {
    functions.mxfp4_[i] =
        chosen(kernels::quantize_mxfp4_variants(),
               kernels::QuantizeMxfp4Use{.kind = {.dtype = kDTypes[i], .search = search}}, target);
    functions.fp8_[i] = chosen(kernels::quantize_fp8_variants(),
                               kernels::QuantizeFp8Use{.kind = {.dtype = kDTypes[i]}}, target);
  }
  return functions;
}

kernels::QuantizeMxfp4Function RoundingFunctions::mxfp4(DType dtype) const {
  return mxfp4_[index_of(dtype)];
}

kernels::QuantizeFp8Function RoundingFunctions::fp8(DType dtype) const {
  return fp8_[index_of(dtype)];
}

}  // namespace ingot::quantize
