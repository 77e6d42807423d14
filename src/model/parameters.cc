#include "model/parameters.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "model/family.h"

namespace ingot::model {
namespace {

using tensor::Shape;

// Collects the parameters of one model; every function adds those of one kind of module.
class ParameterList {
 public:
  explicit ParameterList(const ModelConfig& config) : config_(config) {}

  std::vector<Parameter> build() {
    const int64_t vocab = config_.vocab_size;
    const int64_t hidden = config_.hidden_size;
    const int64_t layers = config_.num_hidden_layers;
    add("model.embed_tokens.weight", Role::kEmbedding, ModuleClass::kEmbedding, Partition::kRows,
        {vocab, hidden});
    add("model.norm.weight", Role::kFinalNorm, ModuleClass::kNorms, Partition::kReplicated,
        {hidden});
    add("lm_head.weight", Role::kLmHead, ModuleClass::kLmHead, Partition::kRows, {vocab, hidden});
    for (int64_t layer = 0; layer < layers + config_.num_nextn_predict_layers; ++layer) {
      layer_ = static_cast<int32_t>(layer);
      prefix_ = fmt::format("model.layers.{}.", layer);
      if (layer >= layers) add_mtp();
      add_attention();
      if (config_.indexer_type(layer) == IndexerType::kFull) add_indexer();
      if (config_.is_dense(layer)) {
        add_mlp("mlp.", ModuleClass::kDenseMlp, Partition::kRows, Role::kDenseGate,
                config_.intermediate_size);
      } else {
        add_moe();
      }
    }
    return std::move(list_);
  }

 private:
  void add(std::string_view suffix, Role role, ModuleClass module_class, Partition partition,
           Shape shape, bool optional = false) {
    const bool mtp = layer_ >= config_.num_hidden_layers;
    list_.push_back({.name = prefix_ + std::string(suffix),
                     .role = role,
                     .module_class = mtp ? ModuleClass::kMtp : module_class,
                     .partition = partition,
                     .shape = shape,
                     .layer = layer_,
                     .expert = expert_,
                     .optional = optional});
  }

  void add_mtp() {
    const int64_t hidden = config_.hidden_size;
    using enum Role;
    constexpr auto kClass = ModuleClass::kMtp;
    add("enorm.weight", kMtpEmbeddingNorm, kClass, Partition::kReplicated, {hidden});
    add("hnorm.weight", kMtpHiddenNorm, kClass, Partition::kReplicated, {hidden});
    add("eh_proj.weight", kMtpProjection, kClass, Partition::kReplicated, {hidden, 2 * hidden});
    add("shared_head.norm.weight", kMtpHeadNorm, kClass, Partition::kReplicated, {hidden});
    const Shape copy{config_.vocab_size, hidden};
    add("embed_tokens.weight", kMtpEmbeddingCopy, kClass, Partition::kRows, copy, true);
    add("shared_head.head.weight", kMtpHeadCopy, kClass, Partition::kRows, copy, true);
  }

  void add_attention() {
    using enum Role;
    using enum Partition;
    constexpr auto kClass = ModuleClass::kAttention;
    constexpr auto kNorm = ModuleClass::kNorms;
    const ModelConfig& c = config_;
    const int64_t heads = c.num_attention_heads;
    add("input_layernorm.weight", kInputNorm, kNorm, kReplicated, {c.hidden_size});
    add("post_attention_layernorm.weight", kPostAttentionNorm, kNorm, kReplicated, {c.hidden_size});
    add("self_attn.q_a_proj.weight", kQA, kClass, kReplicated, {c.q_lora_rank, c.hidden_size});
    add("self_attn.q_a_layernorm.weight", kQANorm, kNorm, kReplicated, {c.q_lora_rank});
    add("self_attn.q_b_proj.weight", kQB, kClass, kHeads, {heads * c.qk_head_dim(), c.q_lora_rank});
    add("self_attn.kv_a_proj_with_mqa.weight", kKvA, kClass, kReplicated,
        {c.kv_lora_rank + c.qk_rope_head_dim, c.hidden_size});
    add("self_attn.kv_a_layernorm.weight", kKvANorm, kNorm, kReplicated, {c.kv_lora_rank});
    add("self_attn.kv_b_proj.weight", kKvB, kClass, kHeads,
        {heads * (c.qk_nope_head_dim + c.v_head_dim), c.kv_lora_rank});
    add("self_attn.o_proj.weight", kO, kClass, kColumns, {c.hidden_size, heads * c.v_head_dim});
  }

  void add_indexer() {
    using enum Role;
    constexpr auto kClass = ModuleClass::kIndexer;
    constexpr auto kReplicated = Partition::kReplicated;
    const ModelConfig& c = config_;
    add("self_attn.indexer.wq_b.weight", kIndexQB, kClass, kReplicated,
        {c.index_n_heads * c.index_head_dim, c.q_lora_rank});
    add("self_attn.indexer.wk.weight", kIndexK, kClass, kReplicated,
        {c.index_head_dim, c.hidden_size});
    add("self_attn.indexer.k_norm.weight", kIndexKNormWeight, kClass, kReplicated,
        {c.index_head_dim});
    add("self_attn.indexer.k_norm.bias", kIndexKNormBias, kClass, kReplicated, {c.index_head_dim});
    add("self_attn.indexer.weights_proj.weight", kIndexGates, kClass, kReplicated,
        {c.index_n_heads, c.hidden_size});
  }

  // `gate` is the role of gate_proj; those of up_proj and down_proj follow it in the enumeration.
  void add_mlp(std::string_view module, ModuleClass module_class, Partition partition, Role gate,
               int64_t intermediate) {
    const auto role = [gate](int offset) {
      return static_cast<Role>(static_cast<int>(gate) + offset);
    };
    const Partition down = partition == Partition::kRows ? Partition::kColumns : partition;
    const Shape wide{intermediate, config_.hidden_size};
    const std::string name(module);
    add(name + "gate_proj.weight", role(0), module_class, partition, wide);
    add(name + "up_proj.weight", role(1), module_class, partition, wide);
    add(name + "down_proj.weight", role(2), module_class, down,
        {config_.hidden_size, intermediate});
  }

  void add_moe() {
    const ModelConfig& c = config_;
    add("mlp.gate.weight", Role::kRouter, ModuleClass::kRouter, Partition::kReplicated,
        {c.n_routed_experts, c.hidden_size});
    add("mlp.gate.e_score_correction_bias", Role::kRouterBias, ModuleClass::kRouter,
        Partition::kReplicated, {c.n_routed_experts});
    for (int64_t expert = 0; expert < c.n_routed_experts; ++expert) {
      expert_ = static_cast<int32_t>(expert);
      add_mlp(fmt::format("mlp.experts.{}.", expert), ModuleClass::kRoutedExperts,
              Partition::kExperts, Role::kExpertGate, c.moe_intermediate_size);
    }
    expert_ = -1;
    if (c.n_shared_experts == 0) return;
    add_mlp("mlp.shared_experts.", ModuleClass::kSharedExperts, Partition::kRows, Role::kSharedGate,
            c.moe_intermediate_size * c.n_shared_experts);
  }

  const ModelConfig& config_;
  std::vector<Parameter> list_;
  std::string prefix_;
  int32_t layer_ = -1;
  int32_t expert_ = -1;
};

}  // namespace

std::string_view name(ModuleClass module_class) {
  constexpr std::string_view kNames[kModuleClasses] = {
      "embedding",      "attention",      "indexers", "dense MLPs", "routers",
      "routed experts", "shared experts", "norms",    "lm_head",    "MTP layer"};
  return kNames[static_cast<size_t>(module_class)];
}

std::string_view name(Partition partition) {
  constexpr std::string_view kNames[] = {"replicated", "rows", "columns", "experts", "heads"};
  return kNames[static_cast<size_t>(partition)];
}

std::string_view Parameter::module() const {
  const std::string_view full = name;
  constexpr std::string_view kWeight = ".weight";
  return full.ends_with(kWeight) ? full.substr(0, full.size() - kWeight.size()) : full;
}

bool Parameter::is_linear() const {
  return shape.rank() == 2 && role != Role::kEmbedding && role != Role::kMtpEmbeddingCopy;
}

std::vector<Parameter> list_parameters(const ModelConfig& config) {
  return ParameterList(config).build();
}

}  // namespace ingot::model
