#pragma once

#include <algorithm>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/check.h"
#include "base/json.h"
#include "endtoend/program.h"
#include "tensor/checkpoint.h"
#include "tensor/safetensors_writer.h"

namespace ingot::endtoend {

// Models for `ingot quantize`, and what it makes of them.

inline constexpr size_t kShards = 5;
inline constexpr const char* kManifest = "ingot_quantization.json";

// model.safetensors of a directory as several files and their index.
inline void split_weights(const std::filesystem::path& directory) {
  const auto whole = tensor::Checkpoint::open(directory).value();
  base::json::object map;
  const size_t share = (whole.tensors().size() + kShards - 1) / kShards;
  for (size_t shard = 0; shard < kShards; ++shard) {
    const std::string file = fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, kShards);
    std::vector<tensor::TensorSpec> specs;
    std::vector<std::byte> data;
    for (size_t i = shard * share; i < std::min((shard + 1) * share, whole.tensors().size()); ++i) {
      const tensor::TensorInfo& info = whole.tensors()[i];
      specs.push_back({info.name, info.dtype, info.shape});
      const size_t begin = data.size();
      data.resize(begin + info.size_bytes);
      CHECK(whole.read(info, 0, std::span(data).subspan(begin)).has_value());
      map[info.name] = file;
    }
    auto writer = tensor::SafetensorsWriter::create(directory / file, specs).value();
    CHECK(writer.append(data).has_value() && writer.finish().has_value());
  }
  std::filesystem::remove(directory / "model.safetensors");
  write_file(directory / "model.safetensors.index.json",
             base::compact_json(base::json::object{{"weight_map", std::move(map)}}));
}

// All files but the manifest, which says when it was written.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  if (!std::filesystem::exists(directory)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string();
    if (name != kManifest) files[name] = contents(entry.path());
  }
  return files;
}

inline bool is_partial(const std::string& name) { return name.contains(".partial-"); }

}  // namespace ingot::endtoend
