#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"
#include "quantize/quantization_plan.h"

namespace ingot::quantize {

// A model of a config and tensor headers, without data, and what a recipe makes of it.
class PlannedModel {
 public:
  explicit PlannedModel(const base::json::object& config)
      : tensors(model::published_tensors(model::parsed(config))), config_(model::parsed(config)) {}

  std::vector<tensor::TensorSpec> tensors;  // a test changes them before it plans

  const model::ModelConfig& config() const { return config_; }
  const tensor::Checkpoint& checkpoint() const { return *checkpoint_; }

  base::Result<QuantizationPlan> plan(Recipe recipe, size_t num_shards = 1) {
    scratch_.emplace();
    checkpoint_.reset();
    model::write_sparse_checkpoint(scratch_->path(), tensors, num_shards);
    auto opened = tensor::Checkpoint::open(scratch_->path());
    CHECK(opened.has_value(), opened ? "" : opened.error().message);
    checkpoint_.emplace(*std::move(opened));
    load_plan_ = model::plan_load(config_, *checkpoint_, {}).value();
    return plan_quantization(config_, load_plan_, *checkpoint_, std::move(recipe));
  }

  // By the name of a built-in recipe; it must succeed.
  QuantizationPlan plan(const std::string& recipe, size_t num_shards = 1) {
    auto result = plan(load_recipe(recipe).value(), num_shards);
    CHECK(result.has_value(), result ? "" : result.error().message);
    return *std::move(result);
  }

  void store_as_fp8(const std::string& module) {
    tensor::TensorSpec& weight = model::tensor_named(tensors, module + ".weight");
    weight.dtype = tensor::DType::kF8E4M3;
    const auto blocks = [](int64_t count) { return (count + 127) / 128; };
    const tensor::Shape scales{blocks(weight.shape[0]), blocks(weight.shape[1])};
    tensors.push_back({module + ".weight_scale_inv", tensor::DType::kF32, scales});
  }

 private:
  model::ModelConfig config_;
  std::optional<base::ScratchDirectory> scratch_;
  std::optional<tensor::Checkpoint> checkpoint_;
  model::LoadPlan load_plan_;
};

inline const PlannedTensor* find(const QuantizationPlan& plan, std::string_view module) {
  for (const PlannedShard& shard : plan.shards) {
    for (const PlannedTensor& tensor : shard.tensors) {
      if (tensor.parameter.module() == module) return &tensor;
    }
  }
  return nullptr;
}

}  // namespace ingot::quantize
