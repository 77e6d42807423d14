#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/model_config.h"
#include "tensor/shape.h"

namespace ingot::model {

// What a parameter is in the forward pass. Together with layer and expert it names one place in
// Weights.
enum class Role : uint8_t {
  kEmbedding,
  kFinalNorm,
  kLmHead,
  kInputNorm,
  kPostAttentionNorm,
  kQA,
  kQANorm,
  kQB,
  kKvA,
  kKvANorm,
  kKvB,
  kO,
  kIndexQB,
  kIndexK,
  kIndexKNormWeight,
  kIndexKNormBias,
  kIndexGates,
  kDenseGate,
  kDenseUp,
  kDenseDown,
  kRouter,
  kRouterBias,
  kExpertGate,
  kExpertUp,
  kExpertDown,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kMtpEmbeddingNorm,
  kMtpHiddenNorm,
  kMtpProjection,
  kMtpHeadNorm,
  kMtpEmbeddingCopy,
  kMtpHeadCopy,  // duplicates of kEmbedding and kLmHead in some files
};

// Modules as people count them.
enum class ModuleClass : uint8_t {
  kEmbedding,
  kAttention,
  kIndexer,
  kDenseMlp,
  kRouter,
  kRoutedExperts,
  kSharedExperts,
  kNorms,
  kLmHead,
  kMtp,
};
std::string_view name(ModuleClass module_class);
inline constexpr size_t kModuleClasses = 10;

// How a parameter is divided among the ranks of tensor parallelism.
enum class Partition : uint8_t { kReplicated, kRows, kColumns, kExperts, kHeads };
std::string_view name(Partition partition);

// A parameter that a model of this config has, under its published name.
struct Parameter {
  std::string name;  // "model.layers.3.mlp.experts.7.up_proj.weight"
  Role role;
  ModuleClass module_class;
  Partition partition;
  tensor::Shape shape;  // of the unquantized tensor, [out, in] or [n]
  int32_t layer = -1;   // -1 outside layers; num_hidden_layers for the MTP layer
  int32_t expert = -1;
  bool optional = false;  // absent from some published files without harm

  // The name without ".weight": what exclude lists and scale tensors use.
  std::string_view module() const;
  // Of a linear layer, so that it may be stored quantized.
  bool is_linear() const;
};

// Every parameter of the model in file order, the MTP layer's last. Sizes and counts follow from
// this list alone: it is the only place that knows the published names.
std::vector<Parameter> list_parameters(const ModelConfig& config);

}  // namespace ingot::model
