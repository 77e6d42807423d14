#include "kernels/row_operations.h"

namespace ingot::kernels {
namespace {

constexpr RowOperations kOperations[] = {
#if defined(__x86_64__)
    {.name = "rows_avx2",
     .target = Target::kAvx2,
     .rms_norm = rms_norm_row_avx2,
     .layer_norm = layer_norm_row_avx2,
     .rotate = rotate_row_avx2,
     .store_cache_row = {store_f32_row, store_bf16_row_avx2, store_fp8_row_avx2},
     .widen_f16 = widen_f16_avx2,
     .widen_bf16 = widen_bf16_avx2,
     .add = add_avx2,
     .encode_row = {nullptr, encode_bf16_avx2, encode_int8_avx2},
     .silu_multiply = silu_multiply_row_avx2,
     .affinities = affinities_avx2,
     .argmax = argmax_avx2,
     .select_topk = select_topk_avx2},
#endif
    {.name = "rows_reference",
     .target = Target::kReference,
     .rms_norm = rms_norm_row_reference,
     .layer_norm = layer_norm_row_reference,
     .rotate = rotate_row_reference,
     .store_cache_row = {store_f32_row, store_bf16_row_reference, store_fp8_row_reference},
     .widen_f16 = widen_f16_reference,
     .widen_bf16 = widen_bf16_reference,
     .add = add_reference,
     .encode_row = {nullptr, encode_bf16_reference, encode_int8_reference},
     .silu_multiply = silu_multiply_row_reference,
     .affinities = affinities_reference,
     .argmax = argmax_reference,
     .select_topk = select_topk_reference},
};

}  // namespace

std::span<const RowOperations> all_row_operations() { return kOperations; }

const RowOperations& row_operations(Target allowed) {
  const RowOperations* chosen = kOperations;
  while (chosen->target > allowed) ++chosen;  // ends at the reference, which every target allows
  return *chosen;
}

}  // namespace ingot::kernels
