#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/check.h"
#include "kernels/weight_fixture.h"
#include "model/parameters.h"
#include "tensor/safetensors_writer.h"

namespace ingot::model {

// Checkpoints for tests whose parameters are stored in any of the published forms.

// A format together with the names and shapes that its tensors have in a file.
enum class StoredForm : uint8_t {
  kF32,
  kF16,
  kBF16,
  kFp8BlockScaleInv,        // weight_scale_inv
  kFp8BlockScale,           // weight_scale, as Quark names it
  kFp8ChannelColumn,        // weight_scale [O, 1]
  kFp8ChannelVector,        // weight_scale [O]
  kMxfp4Quark,              // weight, weight_scale
  kMxfp4CompressedTensors,  // weight_packed, weight_scale
};

inline kernels::WeightFormat format_of(StoredForm form) {
  using enum kernels::WeightFormat;
  constexpr kernels::WeightFormat kFormats[] = {
      kF32, kF16, kBF16, kFp8Block, kFp8Block, kFp8Channel, kFp8Channel, kMxfp4, kMxfp4};
  return kFormats[static_cast<size_t>(form)];
}

// Which form a parameter has in a file. Vectors and the embedding are asked for one of the first
// three.
using FormOf = std::function<StoredForm(const Parameter&)>;

// A parameter's tensors with their bytes, and what these stand for.
struct StoredParameter {
  std::vector<tensor::TensorSpec> specs;
  std::vector<std::vector<std::byte>> bytes;
  std::vector<float> decoded;
};

inline StoredParameter store(const Parameter& parameter, const std::vector<float>& values,
                             StoredForm form) {
  using enum StoredForm;
  using tensor::DType;
  const tensor::Shape& shape = parameter.shape;
  const int64_t cols = shape[shape.rank() - 1];
  const int64_t rows = shape.rank() == 1 ? 1 : shape[0];
  const kernels::StoredMatrix matrix(format_of(form), values, rows, cols);
  const std::string module(parameter.module());
  StoredParameter result{.specs = {}, .bytes = {matrix.data()}, .decoded = matrix.decoded()};
  const auto add = [&](const std::string& name, DType dtype, tensor::Shape tensor_shape) {
    result.specs.push_back({.name = name, .dtype = dtype, .shape = tensor_shape});
  };
  if (form <= kBF16) {
    constexpr DType kDTypes[] = {DType::kF32, DType::kF16, DType::kBF16};
    add(parameter.name, kDTypes[static_cast<size_t>(form)], shape);
    return result;
  }
  CHECK(parameter.is_linear(), parameter.name);
  result.bytes.push_back(matrix.scales());
  const auto blocks = [](int64_t count, int64_t size) { return (count + size - 1) / size; };
  if (form >= kMxfp4Quark) {
    add(module + (form == kMxfp4Quark ? ".weight" : ".weight_packed"), DType::kU8,
        {rows, cols / 2});
    add(module + ".weight_scale", DType::kU8, {rows, blocks(cols, 32)});
    return result;
  }
  add(parameter.name, DType::kF8E4M3, shape);
  if (form == kFp8ChannelColumn) add(module + ".weight_scale", DType::kF32, {rows, 1});
  if (form == kFp8ChannelVector) add(module + ".weight_scale", DType::kF32, {rows});
  if (form == kFp8BlockScaleInv || form == kFp8BlockScale) {
    add(module + (form == kFp8BlockScale ? ".weight_scale" : ".weight_scale_inv"), DType::kF32,
        {blocks(rows, 128), blocks(cols, 128)});
  }
  return result;
}

// model.safetensors of these parameters.
inline void write_stored(const std::filesystem::path& directory,
                         const std::vector<StoredParameter>& parameters) {
  std::vector<tensor::TensorSpec> specs;
  for (const StoredParameter& parameter : parameters) {
    specs.insert(specs.end(), parameter.specs.begin(), parameter.specs.end());
  }
  auto writer = tensor::SafetensorsWriter::create(directory / "model.safetensors", specs).value();
  for (const StoredParameter& parameter : parameters) {
    for (const auto& bytes : parameter.bytes) CHECK(writer.append(bytes).has_value());
  }
  CHECK(writer.finish().has_value());
}

}  // namespace ingot::model
