// config.json: what is accepted is whole and within its bounds, agrees with the document, and can
// be counted; what is refused is refused in one line that names the file.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "model/inspection.h"
#include "model/model_config.h"
#include "model/parameters.h"
#include "model/synthetic_checkpoint.h"

namespace {

namespace json = ingot::base::json;
using ingot::model::IndexerType;
using ingot::model::ModelConfig;

// Models of more experts are accepted and take too long to count a million times.
constexpr int64_t kExpertLayersMax = 512;

void check_message(std::string_view message) {
  CHECK(message.starts_with("config.json"), message);
  CHECK(std::ranges::none_of(message, [](char c) { return static_cast<uint8_t>(c) < 0x20; }),
        message);
}

void check_key(const json::object& document, std::string_view key, int64_t value) {
  const json::value* found = document.if_contains(key);
  CHECK(found != nullptr && found->is_int64() && found->get_int64() == value, key);
  CHECK(value >= 0 && value <= int64_t{1} << 24, key);
}

void check_config(const ModelConfig& config, const json::object& document) {
  check_key(document, "vocab_size", config.vocab_size);
  check_key(document, "hidden_size", config.hidden_size);
  check_key(document, "num_hidden_layers", config.num_hidden_layers);
  check_key(document, "max_position_embeddings", config.max_position_embeddings);
  check_key(document, "num_attention_heads", config.num_attention_heads);
  check_key(document, "q_lora_rank", config.q_lora_rank);
  check_key(document, "kv_lora_rank", config.kv_lora_rank);
  check_key(document, "qk_nope_head_dim", config.qk_nope_head_dim);
  check_key(document, "qk_rope_head_dim", config.qk_rope_head_dim);
  check_key(document, "v_head_dim", config.v_head_dim);
  check_key(document, "intermediate_size", config.intermediate_size);
  check_key(document, "moe_intermediate_size", config.moe_intermediate_size);
  check_key(document, "n_routed_experts", config.n_routed_experts);
  check_key(document, "n_shared_experts", config.n_shared_experts);
  check_key(document, "num_experts_per_tok", config.num_experts_per_tok);
  CHECK(config.rope_theta >= 1);
  CHECK(config.num_experts_per_tok <= config.n_routed_experts);
  CHECK(config.n_routed_experts % config.n_group == 0 && config.topk_group <= config.n_group);
  CHECK(config.indexer_types.size() == static_cast<size_t>(config.num_hidden_layers));
  CHECK(config.indexer_types.front() != IndexerType::kShared);
  for (const IndexerType type : config.indexer_types) {
    CHECK((type == IndexerType::kNone) != config.has_indexer());
  }
  for (const int64_t id : config.eos_token_ids) CHECK(id >= 0 && id < config.vocab_size);
}

void check_counts(const ModelConfig& config) {
  if (config.num_hidden_layers * config.n_routed_experts > kExpertLayersMax) return;
  std::set<std::string_view> names;
  const auto parameters = ingot::model::list_parameters(config);
  for (const auto& parameter : parameters) {
    CHECK(names.insert(parameter.name).second, parameter.name);
    const auto count = parameter.shape.num_elements();
    CHECK(count.has_value() && *count > 0, parameter.name);
  }
  const auto inspection = ingot::model::inspect_config(config);
  CHECK(inspection.parameters > 0 && inspection.active_parameters > 0);
  CHECK(inspection.tensors <= static_cast<int64_t>(parameters.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = ingot::base::parse_json(text, "config.json");
  if (!document) {
    check_message(document.error().message);
    return 0;
  }
  const auto config = ingot::model::parse_model_config(*document, "config.json");
  const auto smaller =
      ingot::model::reshape_config(*document, {.layers = 2, .experts = 8}, "config.json");
  if (!smaller) check_message(smaller.error().message);
  if (!config) {
    check_message(config.error().message);
    CHECK(!smaller.has_value());
    return 0;
  }
  check_config(*config, document->get_object());
  check_counts(*config);
  if (smaller) {
    const auto reshaped = ingot::model::parse_model_config(*smaller, "config.json");
    CHECK(reshaped.has_value() && reshaped->num_hidden_layers == 2);
  }
  return 0;
}
