#include "quantize/fused_experts.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ingot::quantize {
namespace {

using tensor::Shape;
using tensor::TensorInfo;

constexpr std::string_view kExperts = ".mlp.experts.";

// How the published tensors lie in this one, where its shape says so.
std::string how_to_split(const model::ModelConfig& config, const TensorInfo& tensor) {
  const int64_t experts = config.n_routed_experts;
  const int64_t inner = config.moe_intermediate_size;
  const int64_t hidden = config.hidden_size;
  const size_t experts_at = tensor.name.find(kExperts);
  const std::string prefix = tensor.name.substr(0, experts_at + kExperts.size());
  const std::string_view last = std::string_view(tensor.name).substr(prefix.size());
  if (last.starts_with("gate_up_proj") && tensor.shape == Shape{experts, 2 * inner, hidden}) {
    return fmt::format(
        ": of slice E, rows 0 to {} are {}E.gate_proj.weight and rows {} to {} are "
        "{}E.up_proj.weight",
        inner - 1, prefix, inner, 2 * inner - 1, prefix);
  }
  if (last.starts_with("down_proj") && tensor.shape == Shape{experts, hidden, inner}) {
    return fmt::format(": slice E is {}E.down_proj.weight", prefix);
  }
  return fmt::format(" into {}E.gate_proj.weight, up_proj.weight and down_proj.weight", prefix);
}

}  // namespace

base::Status refuse_fused_experts(const model::ModelConfig& config,
                                  const tensor::Checkpoint& checkpoint) {
  for (const TensorInfo& tensor : checkpoint.tensors()) {
    if (tensor.shape.rank() != 3 || !tensor.name.contains(kExperts)) continue;
    return base::error(
        "{}: {} holds all experts of a layer in one 3-D tensor, as transformers saves a model "
        "again; quantize the published checkpoint, or split the tensor first{}",
        tensor.name, tensor.shape.to_string(), how_to_split(config, tensor));
  }
  return {};
}

}  // namespace ingot::quantize
