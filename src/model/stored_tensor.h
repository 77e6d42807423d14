#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "kernels/weight.h"
#include "model/parameters.h"
#include "tensor/checkpoint.h"

namespace ingot::model {

// The observation that decided how a parameter's bytes are read.
enum class FormatRule : uint8_t {
  kDtype,                  // F32, F16 or BF16 and no scale
  kFp8BlockScaleInv,       // F8_E4M3 with 2-D weight_scale_inv
  kFp8BlockScale,          // F8_E4M3 with 2-D weight_scale, as Quark renames it
  kFp8ChannelScale,        // F8_E4M3 with one weight_scale an output row
  kMxfp4Quark,             // U8 weight and U8 weight_scale
  kMxfp4CompressedTensors  // U8 weight_packed and U8 weight_scale
};
std::string_view description(FormatRule rule);

// How one parameter is stored in a checkpoint.
struct StoredTensor {
  const tensor::TensorInfo* data = nullptr;
  const tensor::TensorInfo* scales = nullptr;  // null for unquantized formats
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  FormatRule rule = FormatRule::kDtype;

  uint64_t size_bytes() const {
    return data->size_bytes + (scales == nullptr ? 0 : scales->size_bytes);
  }
};

// What find_stored_tensor found: a tensor, nothing at all, or something that does not fit, in which
// case `problem` says what and `remedy` how to mend it.
struct StoredTensorResult {
  std::optional<StoredTensor> stored;
  std::string problem;
  std::string remedy;
};

// Looks a parameter up by its name and decides its format from dtypes, shapes and scale tensors
// alone. The scale shapes are those of the published formats: FP8 blocks are 128 x 128, MXFP4
// blocks 32 values of a row; last blocks may be partial.
StoredTensorResult find_stored_tensor(const tensor::Checkpoint& checkpoint,
                                      const Parameter& parameter);

}  // namespace ingot::model
