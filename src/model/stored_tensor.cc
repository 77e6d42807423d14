#include "model/stored_tensor.h"

#include <fmt/format.h>

namespace ingot::model {
namespace {

using kernels::WeightFormat;
using tensor::Checkpoint;
using tensor::DType;
using tensor::Shape;
using tensor::TensorInfo;

constexpr std::string_view kDownloadAgain =
    "config.json and weights are of different models, or a file is damaged; download them again";

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

StoredTensorResult problem(std::string what, std::string_view remedy) {
  return {.stored = std::nullopt, .problem = std::move(what), .remedy = std::string(remedy)};
}

StoredTensorResult found(const TensorInfo* data, const TensorInfo* scales, WeightFormat format,
                         FormatRule rule) {
  StoredTensorResult result;
  result.stored = StoredTensor{.data = data, .scales = scales, .format = format, .rule = rule};
  return result;
}

StoredTensorResult wrong_shape(const TensorInfo& tensor, const Shape& expected) {
  return problem(
      fmt::format("{} {} in the file, but config.json asks for {}", tensor::name(tensor.dtype),
                  tensor.shape.to_string(), expected.to_string()),
      kDownloadAgain);
}

// Block or channel FP8, told apart by the scale's shape.
StoredTensorResult fp8(const Parameter& parameter, const TensorInfo& data,
                       const TensorInfo* inverse, const TensorInfo* plain) {
  if (data.shape != parameter.shape) return wrong_shape(data, parameter.shape);
  if (inverse != nullptr && plain != nullptr) {
    return problem("both weight_scale_inv and weight_scale are present", "remove the wrong one");
  }
  const TensorInfo* scales = inverse != nullptr ? inverse : plain;
  if (scales == nullptr) {
    return problem(
        "F8_E4M3 without weight_scale_inv or weight_scale",
        "download the shard that holds the scale; without it the values are meaningless");
  }
  if (scales->dtype != DType::kF32) {
    return problem(
        fmt::format("its scale is {}, and FP8 scales are F32", tensor::name(scales->dtype)),
        "re-export with F32 scales");
  }
  const int64_t out = parameter.shape[0];
  const Shape block{ceil_div(out, 128), ceil_div(parameter.shape[1], 128)};
  if (inverse == nullptr && (scales->shape == Shape{out, 1} || scales->shape == Shape{out})) {
    return found(&data, scales, WeightFormat::kFp8Channel, FormatRule::kFp8ChannelScale);
  }
  if (scales->shape == block) {
    return found(&data, scales, WeightFormat::kFp8Block,
                 inverse != nullptr ? FormatRule::kFp8BlockScaleInv : FormatRule::kFp8BlockScale);
  }
  return problem(
      fmt::format("its scale has shape {}; expected {} for 128 x 128 blocks or {} for rows",
                  scales->shape.to_string(), block.to_string(), Shape{out, 1}.to_string()),
      "Ingot reads these two kinds of FP8 scales; re-export the checkpoint with one");
}

StoredTensorResult mxfp4(const Parameter& parameter, const TensorInfo& data,
                         const TensorInfo* scales, FormatRule rule) {
  const int64_t out = parameter.shape[0];
  const int64_t in = parameter.shape[1];
  const Shape packed{out, in / 2};
  if (in % 2 != 0 || data.shape != packed) return wrong_shape(data, packed);
  if (scales == nullptr) {
    return problem("packed U8 values without weight_scale",
                   "download the shard that holds the scale");
  }
  const Shape blocks{out, ceil_div(in, 32)};
  if (scales->dtype != DType::kU8 || scales->shape != blocks) {
    return problem(
        fmt::format("packed U8 values with a weight_scale of {} {}; MXFP4 has U8 {}",
                    tensor::name(scales->dtype), scales->shape.to_string(), blocks.to_string()),
        "Ingot reads MXFP4 with one E8M0 byte per 32 values; re-quantize from bf16 or FP8");
  }
  return found(&data, scales, WeightFormat::kMxfp4, rule);
}

StoredTensorResult unquantized(const Parameter& parameter, const TensorInfo& data,
                               WeightFormat format, const TensorInfo* scales) {
  if (data.shape != parameter.shape) return wrong_shape(data, parameter.shape);
  if (scales != nullptr) {
    return problem(
        fmt::format("{} values and yet a scale tensor {}", tensor::name(data.dtype), scales->name),
        "one of the two is left over from another export; remove it");
  }
  return found(&data, nullptr, format, FormatRule::kDtype);
}

}  // namespace

std::string_view description(FormatRule rule) {
  switch (rule) {
    case FormatRule::kDtype:
      return "dtype, no scale";
    case FormatRule::kFp8BlockScaleInv:
      return "F8_E4M3 with weight_scale_inv per 128 x 128 block";
    case FormatRule::kFp8BlockScale:
      return "F8_E4M3 with weight_scale per 128 x 128 block";
    case FormatRule::kFp8ChannelScale:
      return "F8_E4M3 with weight_scale per output row";
    case FormatRule::kMxfp4Quark:
      return "U8 with U8 weight_scale per 32 values (Quark)";
    case FormatRule::kMxfp4CompressedTensors:
      return "weight_packed with U8 weight_scale per 32 values (compressed-tensors)";
  }
  return "";
}

StoredTensorResult find_stored_tensor(const Checkpoint& checkpoint, const Parameter& parameter) {
  const std::string module(parameter.module());
  const TensorInfo* data = checkpoint.find(parameter.name);
  if (!parameter.is_linear()) {
    if (data == nullptr) return {};
    switch (data->dtype) {
      case DType::kF32:
        return unquantized(parameter, *data, WeightFormat::kF32, nullptr);
      case DType::kF16:
        return unquantized(parameter, *data, WeightFormat::kF16, nullptr);
      case DType::kBF16:
        return unquantized(parameter, *data, WeightFormat::kBF16, nullptr);
      default:
        return problem(
            fmt::format("dtype {}; expected F32, F16 or BF16", tensor::name(data->dtype)),
            "this parameter is never quantized; re-export the checkpoint");
    }
  }
  const TensorInfo* packed = checkpoint.find(module + ".weight_packed");
  const TensorInfo* scale = checkpoint.find(module + ".weight_scale");
  const TensorInfo* inverse = checkpoint.find(module + ".weight_scale_inv");
  if (packed != nullptr) {
    if (data != nullptr) {
      return problem("both weight and weight_packed are present", "remove the wrong one");
    }
    if (packed->dtype != DType::kU8) {
      return problem(fmt::format("weight_packed is {}; MXFP4 is U8", tensor::name(packed->dtype)),
                     "Ingot reads MXFP4; re-quantize from bf16 or FP8");
    }
    return mxfp4(parameter, *packed, scale, FormatRule::kMxfp4CompressedTensors);
  }
  if (data == nullptr) return {};
  const TensorInfo* any_scale = scale != nullptr ? scale : inverse;
  switch (data->dtype) {
    case DType::kF32:
      return unquantized(parameter, *data, WeightFormat::kF32, any_scale);
    case DType::kF16:
      return unquantized(parameter, *data, WeightFormat::kF16, any_scale);
    case DType::kBF16:
      return unquantized(parameter, *data, WeightFormat::kBF16, any_scale);
    case DType::kF8E4M3:
      return fp8(parameter, *data, inverse, scale);
    case DType::kU8:
      return mxfp4(parameter, *data, scale, FormatRule::kMxfp4Quark);
    default:
      return problem(fmt::format("dtype {}; Ingot reads F32, F16, BF16, F8_E4M3 and MXFP4 in U8",
                                 tensor::name(data->dtype)),
                     "use a checkpoint in one of these formats");
  }
}

}  // namespace ingot::model
