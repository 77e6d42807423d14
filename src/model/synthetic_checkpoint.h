#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/json.h"
#include "base/random.h"
#include "base/result.h"
#include "base/thread_team.h"
#include "model/parameters.h"
#include "tensor/dtype.h"

namespace ingot::model {

// How a config is cut down before weights are made for it.
struct SyntheticShape {
  // One dense layer, then MoE; indexers full, shared, shared, shared, repeated.
  std::optional<int64_t> layers = {};
  std::optional<int64_t> experts = {};  // a layer
  bool keep_mtp = true;
};

// The config.json of a smaller model of the same kind: the given one with the shape's changes and
// without its quantization_config. Errors: a config that parse_model_config refuses.
base::Result<base::json::value> reshape_config(const base::json::value& config,
                                               const SyntheticShape& shape,
                                               std::string_view source);

// A parameter's made-up weights: close to normal, with the spread that keeps activations of order
// one through any depth (1.2 / sqrt(inputs) for matrices). Every element is a function of seed,
// name and index alone, so that any part can be made again anywhere.
class SyntheticValues {
 public:
  SyntheticValues(const Parameter& parameter, uint64_t seed);

  double operator[](uint64_t index) const { return mean_ + spread_ * stream_.normal(index); }

 private:
  base::RandomStream stream_;
  double mean_ = 0;
  double spread_ = 1;
};

// Writes DESTINATION/model.safetensors and then config.json, which says that they are synthetic.
// `dtype` is kF32 or kBF16 and holds for all but the routers' biases, which are F32 as published.
// Errors: files exist there already, a full disk.
base::Status write_synthetic_checkpoint(const std::filesystem::path& destination,
                                        const base::json::value& config, tensor::DType dtype,
                                        uint64_t seed, base::ThreadTeam& team,
                                        const base::Clock& clock);

}  // namespace ingot::model
