#include "model/synthetic_checkpoint.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/output_file.h"
#include "base/progress.h"
#include "base/random.h"
#include "model/model_config.h"
#include "tensor/float16.h"
#include "tensor/safetensors_writer.h"

namespace ingot::model {
namespace {

using base::error;
using tensor::DType;
namespace json = base::json;

// Values made between two writes.
constexpr uint64_t kPieceValues = 1 << 20;

DType dtype_of(const Parameter& parameter, DType dtype) {
  return parameter.role == Role::kRouterBias ? DType::kF32 : dtype;
}

// Values [first, first + count) as bytes.
void make_values(const Parameter& parameter, DType dtype, uint64_t seed, uint64_t first,
                 uint64_t count, base::ThreadTeam& team, std::byte* out) {
  const SyntheticValues values(parameter, seed);
  const size_t width = tensor::size_bytes(dtype);
  team.run([&](int member) {
    const base::IndexRange range = base::share_of(static_cast<int64_t>(count), member, team.size());
    for (auto i = static_cast<uint64_t>(range.begin); i < static_cast<uint64_t>(range.end); ++i) {
      const auto value = static_cast<float>(values[first + i]);
      const tensor::BFloat16 narrow = tensor::to_bf16(value);
      const void* source = dtype == DType::kF32 ? static_cast<const void*>(&value) : &narrow;
      std::memcpy(out + i * width, source, width);
    }
  });
}

base::Status write_tensors(const std::filesystem::path& path,
                           const std::vector<Parameter>& parameters, DType dtype, uint64_t seed,
                           base::ThreadTeam& team, const base::Clock& clock) {
  std::vector<tensor::TensorSpec> specs;
  uint64_t total_bytes = 0;
  for (const Parameter& parameter : parameters) {
    const DType stored = dtype_of(parameter, dtype);
    specs.push_back({.name = parameter.name, .dtype = stored, .shape = parameter.shape});
    total_bytes +=
        static_cast<uint64_t>(parameter.shape.num_elements().value()) * tensor::size_bytes(stored);
  }
  base::Progress progress("writing", total_bytes, base::Progress::Unit::kBytes, clock);
  tensor::SafetensorsWriter writer = TRY(tensor::SafetensorsWriter::create(path, std::move(specs)));
  std::vector<std::byte> piece(kPieceValues * sizeof(float));
  uint64_t done_bytes = 0;
  for (const Parameter& parameter : parameters) {
    const DType stored = dtype_of(parameter, dtype);
    const auto count = static_cast<uint64_t>(parameter.shape.num_elements().value());
    for (uint64_t first = 0; first < count; first += kPieceValues) {
      const uint64_t values = std::min(kPieceValues, count - first);
      const uint64_t bytes = values * tensor::size_bytes(stored);
      make_values(parameter, stored, seed, first, values, team, piece.data());
      TRY(writer.append({piece.data(), bytes}));
      done_bytes += bytes;
      progress.update(done_bytes);
    }
  }
  return writer.finish();
}

}  // namespace

SyntheticValues::SyntheticValues(const Parameter& parameter, uint64_t seed)
    : stream_(base::random_stream(seed, parameter.name)) {
  if (parameter.name.ends_with("norm.weight")) {
    mean_ = 1.0;
    spread_ = 0.2;
  } else if (parameter.name.ends_with("bias")) {
    spread_ = 0.1;
  } else {
    spread_ = 1.2 / std::sqrt(static_cast<double>(parameter.shape[parameter.shape.rank() - 1]));
  }
}

base::Result<json::value> reshape_config(const json::value& config, const SyntheticShape& shape,
                                         std::string_view source) {
  const ModelConfig original = TRY(parse_model_config(config, source));
  json::object object = config.get_object();
  object.erase("quantization_config");
  if (!shape.keep_mtp) object["num_nextn_predict_layers"] = 0;
  if (shape.experts) object["n_routed_experts"] = *shape.experts;
  if (shape.layers) {
    object["num_hidden_layers"] = *shape.layers;
    object["first_k_dense_replace"] = std::min<int64_t>(1, original.first_k_dense_replace);
    for (const char* key : {"mlp_layer_types", "index_topk_freq", "index_skip_topk_offset",
                            "index_topk_pattern", "indexer_types"}) {
      object.erase(key);
    }
    json::array types;
    const bool shares = std::ranges::count(original.indexer_types, IndexerType::kShared) > 0;
    for (int64_t layer = 0; layer < *shape.layers && original.has_indexer(); ++layer) {
      types.emplace_back(shares && layer % 4 != 0 ? "shared" : "full");
    }
    if (original.has_indexer()) object["indexer_types"] = std::move(types);
  }
  json::value reshaped(std::move(object));
  TRY(parse_model_config(reshaped, source));
  return reshaped;
}

base::Status write_synthetic_checkpoint(const std::filesystem::path& destination,
                                        const json::value& config, DType dtype, uint64_t seed,
                                        base::ThreadTeam& team, const base::Clock& clock) {
  const std::filesystem::path config_file = destination / "config.json";
  const std::filesystem::path weights_file = destination / "model.safetensors";
  const ModelConfig parsed = TRY(parse_model_config(config, config_file.string()));
  std::error_code code;
  const bool is_new = std::filesystem::create_directories(destination, code);
  if (code) return error("{}: cannot create: {}", destination.string(), code.message());
  for (const auto& path : {config_file, weights_file}) {
    if (std::filesystem::exists(path, code)) {
      return error("{}: exists already; remove it or name another directory", path.string());
    }
  }
  std::vector<Parameter> parameters = list_parameters(parsed);
  // Copies of the embeddings are left to the files that have them.
  std::erase_if(parameters, [](const Parameter& parameter) { return parameter.optional; });
  json::object object = config.get_object();
  object["dtype"] = dtype == DType::kF32 ? "float32" : "bfloat16";
  object[kSyntheticWeightsKey] = json::object{{"seed", seed}};
  base::Status status = write_tensors(weights_file, parameters, dtype, seed, team, clock);
  if (status) status = base::write_text_file(config_file, base::pretty_json(object));
  if (!status) {
    // What is left would only stand in the way of the next attempt.
    std::filesystem::remove(weights_file, code);
    if (is_new) std::filesystem::remove(destination, code);
  }
  return status;
}

}  // namespace ingot::model
