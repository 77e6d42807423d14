#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <boost/json/serialize.hpp>

#include "base/check.h"
#include "base/json.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "tensor/safetensors_writer.h"

namespace ingot::model {

// Checkpoints for tests: headers of any size and content, with a hole where the data would be.

using tensor::DType;
using tensor::TensorSpec;

inline uint64_t data_bytes(const TensorSpec& tensor) {
  return static_cast<uint64_t>(tensor.shape.num_elements().value()) *
         tensor::size_bytes(tensor.dtype);
}

// The JSON of a safetensors header.
inline std::string header_text(std::span<const TensorSpec> tensors) {
  std::string text = "{";
  uint64_t offset = 0;
  for (const TensorSpec& tensor : tensors) {
    const uint64_t end = offset + data_bytes(tensor);
    text += fmt::format(R"({}{}:{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})",
                        offset == 0 && text.size() == 1 ? "" : ",",
                        base::json::serialize(base::json::string(tensor.name)),
                        tensor::name(tensor.dtype), tensor.shape.to_string(), offset, end);
    offset = end;
  }
  return text + "}";
}

// A safetensors file of this header and data.
inline void write_file(const std::filesystem::path& path, std::string_view header,
                       std::string_view data) {
  const uint64_t length = header.size();
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof length);
  file.write(header.data(), static_cast<std::streamsize>(header.size()));
  file.write(data.data(), static_cast<std::streamsize>(data.size()));
  file.close();
  CHECK(file.good(), path.string());
}

// One with zeros for data that take no space on disk.
inline void write_sparse_file(const std::filesystem::path& path,
                              std::span<const TensorSpec> tensors) {
  uint64_t size_bytes = 0;
  for (const TensorSpec& tensor : tensors) size_bytes += data_bytes(tensor);
  const std::string header = header_text(tensors);
  write_file(path, header, "");
  std::filesystem::resize_file(path, sizeof(uint64_t) + header.size() + size_bytes);
}

// model.safetensors, or `num_shards` of about as many tensors each, with their index.
inline void write_sparse_checkpoint(const std::filesystem::path& directory,
                                    std::span<const TensorSpec> tensors, size_t num_shards = 1) {
  if (num_shards == 1) return write_sparse_file(directory / "model.safetensors", tensors);
  base::json::object map;
  const size_t share = (tensors.size() + num_shards - 1) / num_shards;
  for (size_t shard = 0; shard < num_shards; ++shard) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, num_shards);
    const size_t first = std::min(shard * share, tensors.size());
    const auto part = tensors.subspan(first, std::min(share, tensors.size() - first));
    write_sparse_file(directory / file, part);
    for (const TensorSpec& tensor : part) map[tensor.name] = file;
  }
  std::ofstream(directory / "model.safetensors.index.json")
      << base::json::serialize(base::json::object{{"weight_map", std::move(map)}});
}

// The tensors of a bf16 release: everything BF16 but the routers' biases.
inline std::vector<TensorSpec> published_tensors(const ModelConfig& config) {
  std::vector<TensorSpec> tensors;
  for (const Parameter& parameter : list_parameters(config)) {
    if (parameter.optional) continue;
    const bool router_bias = parameter.role == Role::kRouterBias;
    tensors.push_back({.name = parameter.name,
                       .dtype = router_bias ? DType::kF32 : DType::kBF16,
                       .shape = parameter.shape});
  }
  return tensors;
}

inline TensorSpec& tensor_named(std::vector<TensorSpec>& tensors, std::string_view name) {
  const auto found = std::ranges::find(tensors, name, &TensorSpec::name);
  CHECK(found != tensors.end(), name);
  return *found;
}

inline void remove_tensors(std::vector<TensorSpec>& tensors, std::string_view part_of_name) {
  const size_t removed = std::erase_if(
      tensors, [&](const TensorSpec& tensor) { return tensor.name.contains(part_of_name); });
  CHECK(removed > 0, part_of_name);
}

}  // namespace ingot::model
