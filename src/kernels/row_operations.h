#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/activations.h"
#include "kernels/embed.h"
#include "kernels/paged_cache.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/route.h"
#include "kernels/select_topk.h"
#include "kernels/target.h"

namespace ingot::kernels {

// What operations do to one row at a time, for one target: plain loops over its values, which take
// any width and have no shapes to choose by, so that a target has one of each. Chosen at load and
// handed to every operation by its ExecutionContext. Each is described where its type stands.
struct RowOperations {
  std::string_view name;
  Target target;

  RmsNormRow rms_norm;
  LayerNormRow layer_norm;
  RotateRow rotate;
  std::array<StoreCacheRow, 3> store_cache_row;  // by CacheType
  WidenRow<tensor::Float16> widen_f16;
  WidenRow<tensor::BFloat16> widen_bf16;
  AddRow add;
  std::array<EncodeRow, 3> encode_row;  // by ActivationType; f32 is never copied
  SiluMultiplyRow silu_multiply;
  AffinityRow affinities;
  ArgmaxRow argmax;
  SelectTopk select_topk;

  EncodeRow encode(ActivationType type) const { return encode_row[static_cast<size_t>(type)]; }
  StoreCacheRow store(CacheType type) const { return store_cache_row[static_cast<size_t>(type)]; }
};

// All of this build, fastest first, reference last.
std::span<const RowOperations> all_row_operations();

// The fastest that the target allows.
const RowOperations& row_operations(Target allowed);

}  // namespace ingot::kernels
