#include "model/model_config.h"

#include <algorithm>
#include <utility>

#include "base/mapped_file.h"
#include "kernels/route.h"
#include "model/config_reader.h"
#include "model/end_of_sequence.h"
#include "model/family.h"
#include "model/manifest_name.h"

namespace ingot::model {
namespace {

using base::error;
using base::Result;
using base::Status;
using kernels::RopeStyle;
namespace json = base::json;

// Bounds that keep every product of dimensions inside 63 bits and a hostile config from asking for
// more bookkeeping than a machine has; several times what any published model needs.
constexpr int64_t kDimensionMax = int64_t{1} << 20;
constexpr int64_t kHeadDimensionMax = int64_t{1} << 14;
constexpr int64_t kVocabularyMax = int64_t{1} << 24;
constexpr int64_t kPositionsMax = int64_t{1} << 24;
constexpr int64_t kHeadsMax = 4096;
constexpr int64_t kLayersMax = 1024;
constexpr int64_t kExpertsMax = 8192;
constexpr int64_t kExpertLayersMax = int64_t{1} << 18;
constexpr uint64_t kConfigBytesMax = 16 << 20;

// Keys that say nothing about the arithmetic, or that others imply.
constexpr std::string_view kHarmlessKeys[] = {
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "auto_map",
    "aux_loss_alpha",
    "bos_token_id",
    "dtype",
    "ep_size",
    "head_dim",
    "initializer_range",
    "model_type",
    "num_key_value_heads",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "pretraining_tp",
    "return_dict",
    "router_aux_loss_coef",
    "seq_aux",
    "tokenizer_class",
    "torch_dtype",
    "transformers_version",
    "use_cache",
    "moe_router_dtype",
};

// Keys that change the arithmetic of related models.
constexpr std::string_view kRefusedKeys[] = {
    "swiglu_limit",      "sliding_window",      "attn_logit_softcapping", "final_logit_softcapping",
    "logit_softcapping", "attention_sink",      "attention_sinks",        "mlp_bias",
    "use_qk_norm",       "residual_multiplier", "embedding_multiplier",   "logits_scaling",
};

// Keys of quantization_config that say how the tensors were made or are named, both of which the
// file itself shows.
constexpr std::string_view kHarmlessQuantizationKeys[] = {
    "activation_scheme",
    "fmt",
    "format",
    "scale_fmt",
    "version",
    "quant_mode",
    "global_quant_config",
    "layer_quant_config",
    "layer_type_quant_config",
    "kv_cache_quant_config",
    "kv_cache_post_rope",
    "softmax_quant_spec",
    "export",
    "config_groups",
    "quantization_status",
    "kv_cache_scheme",
    "sparsity_config",
    "global_compression_ratio",
    "packed_modules_mapping",
};

RopeStyle rope_style(bool interleaved) {
  return interleaved ? RopeStyle::kInterleaved : RopeStyle::kHalfSplit;
}

Status read_dimensions(ConfigReader& reader, ModelConfig& config) {
  config.vocab_size = TRY(reader.integer("vocab_size", 1, kVocabularyMax));
  config.hidden_size = TRY(reader.integer("hidden_size", 1, kDimensionMax));
  config.num_hidden_layers = TRY(reader.integer("num_hidden_layers", 1, kLayersMax));
  config.num_nextn_predict_layers = TRY(reader.integer_or("num_nextn_predict_layers", 0, 0, 1));
  config.max_position_embeddings = TRY(reader.integer("max_position_embeddings", 1, kPositionsMax));
  config.num_attention_heads = TRY(reader.integer("num_attention_heads", 1, kHeadsMax));
  config.q_lora_rank = TRY(reader.integer("q_lora_rank", 1, kDimensionMax));
  config.kv_lora_rank = TRY(reader.integer("kv_lora_rank", 1, kDimensionMax));
  config.qk_nope_head_dim = TRY(reader.integer("qk_nope_head_dim", 1, kHeadDimensionMax));
  config.qk_rope_head_dim = TRY(reader.integer("qk_rope_head_dim", 2, kHeadDimensionMax));
  config.v_head_dim = TRY(reader.integer("v_head_dim", 1, kHeadDimensionMax));
  config.rms_norm_eps = TRY(reader.number("rms_norm_eps", 0, 1));
  if (config.qk_rope_head_dim % 2 != 0) {
    return error("{}: \"qk_rope_head_dim\" is {}; it must be even, since rope rotates pairs",
                 reader.source(), config.qk_rope_head_dim);
  }
  const int64_t qk = TRY(reader.integer_or("qk_head_dim", config.qk_head_dim(), 1, kDimensionMax));
  if (qk != config.qk_head_dim()) {
    return error("{}: \"qk_head_dim\" is {}, but qk_nope_head_dim + qk_rope_head_dim is {}",
                 reader.source(), qk, config.qk_head_dim());
  }
  return {};
}

// Number of leading dense layers, from first_k_dense_replace, mlp_layer_types or both.
Status read_dense_layers(ConfigReader& reader, ModelConfig& config) {
  const std::vector<std::string> types = TRY(reader.strings("mlp_layer_types"));
  if (types.empty()) {
    config.first_k_dense_replace = TRY(reader.integer("first_k_dense_replace", 0, kLayersMax));
    return {};
  }
  const auto first_sparse = std::find(types.begin(), types.end(), "sparse");
  const auto dense = std::count(types.begin(), first_sparse, "dense");
  const auto sparse = std::count(first_sparse, types.end(), "sparse");
  const auto layers = static_cast<size_t>(config.num_hidden_layers);
  if (types.size() != layers || static_cast<size_t>(dense + sparse) != layers) {
    return error(
        "{}: \"mlp_layer_types\" must be \"dense\" layers, then \"sparse\" ones, {} in all",
        reader.source(), layers);
  }
  config.first_k_dense_replace =
      TRY(reader.integer_or("first_k_dense_replace", dense, 0, kLayersMax));
  if (std::min<int64_t>(config.first_k_dense_replace, config.num_hidden_layers) != dense) {
    return error("{}: \"first_k_dense_replace\" is {}, but \"mlp_layer_types\" has {} dense layers",
                 reader.source(), config.first_k_dense_replace, dense);
  }
  return {};
}

Status read_experts(ConfigReader& reader, ModelConfig& config) {
  config.intermediate_size = TRY(reader.integer("intermediate_size", 1, kDimensionMax));
  config.moe_intermediate_size = TRY(reader.integer("moe_intermediate_size", 1, kDimensionMax));
  config.n_routed_experts = TRY(reader.integer("n_routed_experts", 1, kExpertsMax));
  config.n_shared_experts = TRY(reader.integer("n_shared_experts", 0, 256));
  config.num_experts_per_tok =
      TRY(reader.integer("num_experts_per_tok", 1, config.n_routed_experts));
  config.n_group = TRY(reader.integer_or("n_group", 1, 1, kernels::kGroupsMax));
  config.topk_group = TRY(reader.integer_or("topk_group", 1, 1, 1024));
  if (config.topk_group > config.n_group) {
    return error("{}: \"topk_group\" is {}, more than \"n_group\", which is {}", reader.source(),
                 config.topk_group, config.n_group);
  }
  config.norm_topk_prob = TRY(reader.boolean_or("norm_topk_prob", true));
  config.routed_scaling_factor = TRY(reader.number("routed_scaling_factor", 0, 1e6));
  TRY(read_dense_layers(reader, config));
  if (config.num_hidden_layers * config.n_routed_experts > kExpertLayersMax) {
    return error("{}: {} layers of {} experts are more than Ingot keeps account of",
                 reader.source(), config.num_hidden_layers, config.n_routed_experts);
  }
  const int64_t group_size = config.n_routed_experts / config.n_group;
  if (config.n_routed_experts % config.n_group != 0 || (config.n_group > 1 && group_size < 2) ||
      config.num_experts_per_tok > config.topk_group * group_size) {
    return error("{}: {} experts cannot form {} groups of which {} give {} experts a token",
                 reader.source(), config.n_routed_experts, config.n_group, config.topk_group,
                 config.num_experts_per_tok);
  }
  return {};
}

Status read_yarn(ConfigReader& reader, ModelConfig& config) {
  Yarn yarn;
  yarn.factor = TRY(reader.number("factor", 1, 1e6));
  yarn.beta_fast = TRY(reader.number_or("beta_fast", 32, 1e-6, 1e6));
  yarn.beta_slow = TRY(reader.number_or("beta_slow", 1, 1e-6, 1e6));
  yarn.mscale = TRY(reader.number_or("mscale", 0, 0, 1e6));
  yarn.mscale_all_dim = TRY(reader.number_or("mscale_all_dim", 0, 0, 1e6));
  yarn.original_max_position_embeddings =
      TRY(reader.integer("original_max_position_embeddings", 1, kPositionsMax));
  config.yarn = yarn;
  return {};
}

// One of the objects that describe rope: rope_parameters (new style) or rope_scaling (old style).
Status read_rope_object(ConfigReader& outer, std::string_view key, ModelConfig& config) {
  const json::object* object = TRY(outer.object(key));
  if (object == nullptr) return {};
  ConfigReader reader(*object, outer.source() + ": \"" + std::string(key) + "\"");
  const double theta = TRY(reader.number_or("rope_theta", config.rope_theta, 0, 1e12));
  if (config.rope_theta != 0 && theta != config.rope_theta) {
    return error("{}: \"rope_theta\" is {} there and {} at top level", reader.source(), theta,
                 config.rope_theta);
  }
  config.rope_theta = theta;
  TRY(reader.require_number("partial_rotary_factor", 1));
  const std::string old_type = TRY(reader.string_or("type", "default"));
  const std::string type = TRY(reader.string_or("rope_type", old_type));
  if (type == "yarn") {
    TRY(read_yarn(reader, config));
  } else if (type != "default") {
    return error("{}: rope of type {}; Ingot computes \"default\" and \"yarn\"", reader.source(),
                 shown_string(type));
  }
  if (const auto unread = reader.unread_keys(); !unread.empty()) {
    return error("{}: {} is unknown there; Ingot would compute another rotation", reader.source(),
                 shown_string(unread.front()));
  }
  return {};
}

Status read_rope(ConfigReader& reader, ModelConfig& config) {
  config.rope_theta = TRY(reader.number_or("rope_theta", 0, 1, 1e12));
  TRY(reader.require_number("partial_rotary_factor", 1));
  TRY(read_rope_object(reader, "rope_parameters", config));
  const std::optional<Yarn> yarn = std::exchange(config.yarn, std::nullopt);
  TRY(read_rope_object(reader, "rope_scaling", config));
  if (reader.has("rope_parameters") && reader.has("rope_scaling") && yarn != config.yarn) {
    return error(
        "{}: \"rope_scaling\" and \"rope_parameters\" describe different rotations; remove "
        "the wrong one",
        reader.source());
  }
  if (yarn) config.yarn = yarn;
  if (config.rope_theta < 1) {
    return error(
        "{}: no \"rope_theta\" of at least 1, neither at top level nor in \"rope_parameters\"",
        reader.source());
  }
  config.rope_style = rope_style(TRY(reader.boolean_or("rope_interleave", true)));
  return {};
}

// A name a layer: the explicit list, else the pattern, else the rule of frequency and offset.
Result<std::vector<IndexerType>> read_indexer_types(ConfigReader& reader, int64_t layers) {
  const std::vector<std::string> names = TRY(reader.strings("indexer_types"));
  const std::string pattern = TRY(reader.string_or("index_topk_pattern", ""));
  const int64_t frequency = TRY(reader.integer_or("index_topk_freq", 1, 1, kLayersMax));
  const int64_t offset = TRY(reader.integer_or("index_skip_topk_offset", 2, 1, kLayersMax));
  std::vector<IndexerType> types;
  for (const std::string& type : names) {
    if (type != "full" && type != "shared") {
      return error("{}: \"indexer_types\" contains {}; expected \"full\" or \"shared\"",
                   reader.source(), shown_string(type));
    }
    types.push_back(type == "full" ? IndexerType::kFull : IndexerType::kShared);
  }
  for (const char letter : names.empty() ? pattern : "") {
    if (letter != 'F' && letter != 'S') {
      return error("{}: \"index_topk_pattern\" contains {}; expected F or S a layer",
                   reader.source(), shown_string({&letter, 1}));
    }
    types.push_back(letter == 'F' ? IndexerType::kFull : IndexerType::kShared);
  }
  for (int64_t i = 0; names.empty() && pattern.empty() && i < layers; ++i) {
    const bool full = std::max<int64_t>(i - offset + 1, 0) % frequency == 0;
    types.push_back(full ? IndexerType::kFull : IndexerType::kShared);
  }
  if (types.size() != static_cast<size_t>(layers)) {
    return error("{}: \"{}\" describes {} layers of {}", reader.source(),
                 names.empty() ? "index_topk_pattern" : "indexer_types", types.size(), layers);
  }
  if (types.front() != IndexerType::kFull) {
    return error("{}: layer 0 cannot share an index selection, since none is before it",
                 reader.source());
  }
  return types;
}

Status read_indexer(ConfigReader& reader, const FamilyTraits& family, ModelConfig& config) {
  if (!family.has_indexer) {
    config.indexer_types.assign(static_cast<size_t>(config.num_hidden_layers), IndexerType::kNone);
    return {};
  }
  config.index_n_heads = TRY(reader.integer("index_n_heads", 1, kHeadsMax));
  config.index_head_dim = TRY(reader.integer("index_head_dim", 1, kHeadDimensionMax));
  config.index_topk = TRY(reader.integer("index_topk", 1, kPositionsMax));
  if (config.index_head_dim < config.qk_rope_head_dim) {
    return error("{}: \"index_head_dim\" is {}, less than the {} values that rope rotates",
                 reader.source(), config.index_head_dim, config.qk_rope_head_dim);
  }
  const bool interleaved = family.indexer_rope_style == RopeStyle::kInterleaved;
  config.indexer_rope_style =
      rope_style(TRY(reader.boolean_or("indexer_rope_interleave", interleaved)));
  config.index_share_for_mtp_iteration =
      TRY(reader.boolean_or("index_share_for_mtp_iteration", false));
  config.indexer_types = TRY(read_indexer_types(reader, config.num_hidden_layers));
  return {};
}

// Only what is compared with the file: formats themselves follow from the tensors.
Status read_quantization(ConfigReader& outer, ModelConfig& config) {
  const json::object* object = TRY(outer.object("quantization_config"));
  if (object == nullptr) return {};
  ConfigReader reader(*object, outer.source() + ": \"quantization_config\"");
  config.quant_method = TRY(reader.string_or("quant_method", ""));
  for (const std::string_view key : {"modules_to_not_convert", "exclude", "ignore"}) {
    for (std::string& module : TRY(reader.strings(key))) {
      config.unquantized_modules.push_back(std::move(module));
    }
  }
  // Weights that were rotated or transformed need the same done to activations.
  TRY(reader.require_absent("algo_config"));
  TRY(reader.require_absent("transform_config"));
  if (const json::value* block = reader.find("weight_block_size")) {
    if (*block != json::value(json::array{128, 128})) {
      return error("{}: \"weight_block_size\" is not [128, 128], the only one that Ingot reads",
                   reader.source());
    }
  }
  for (const std::string_view key : kHarmlessQuantizationKeys) reader.ignore(key);
  for (const std::string& key : reader.unread_keys()) {
    config.unread_keys.push_back("quantization_config." + key);
  }
  return {};
}

// Settings for which Ingot has one implementation only.
Status check_fixed_choices(ConfigReader& reader) {
  TRY(reader.require_string("hidden_act", "silu"));
  TRY(reader.require_string("scoring_func", "sigmoid"));
  TRY(reader.require_string("topk_method", "noaux_tc"));
  TRY(reader.require_boolean("attention_bias", false));
  TRY(reader.require_boolean("tie_word_embeddings", false));
  TRY(reader.require_number("moe_layer_freq", 1));
  for (const std::string_view key : kRefusedKeys) TRY(reader.require_absent(key));
  return {};
}

}  // namespace

IndexerType ModelConfig::indexer_type(int64_t layer) const {
  if (!has_indexer()) return IndexerType::kNone;
  if (layer >= num_hidden_layers) return IndexerType::kFull;
  return indexer_types[static_cast<size_t>(layer)];
}

Result<ModelConfig> parse_model_config(const json::value& document, std::string_view source) {
  const json::object* object = document.if_object();
  if (object == nullptr) return error("{}: not a JSON object", source);
  ConfigReader reader(*object, std::string(source));
  const std::string model_type = TRY(reader.string_or("model_type", ""));
  const FamilyTraits* family = find_family(model_type);
  if (family == nullptr) {
    return error("{}: \"model_type\" is {}; Ingot knows {}", source, shown_string(model_type),
                 supported_model_types());
  }
  ModelConfig config;
  config.family = family->family;
  TRY(read_dimensions(reader, config));
  TRY(read_experts(reader, config));
  TRY(read_rope(reader, config));
  TRY(read_indexer(reader, *family, config));
  config.eos_token_ids = TRY(read_end_of_sequence(reader, config.vocab_size));
  TRY(read_quantization(reader, config));
  config.synthetic_weights = TRY(reader.object(kSyntheticWeightsKey))
  != nullptr;
  TRY(check_fixed_choices(reader));
  for (const std::string_view key : kHarmlessKeys) reader.ignore(key);
  for (std::string& key : reader.unread_keys()) config.unread_keys.push_back(std::move(key));
  return config;
}

Result<std::filesystem::path> config_path(const std::filesystem::path& path) {
  std::error_code code;
  if (std::filesystem::is_directory(path, code)) {
    const std::filesystem::path file = path / "config.json";
    if (std::filesystem::exists(file, code)) return file;
    if (std::filesystem::exists(path / kManifestName, code)) {
      return error(
          "{}: an unfinished quantization; give the same `ingot quantize` command again to finish "
          "it",
          path.string());
    }
    return error("{}: no config.json in this directory; name a model directory", path.string());
  }
  if (path.extension() == ".safetensors") {
    return error("{}: a file of weights; name the model directory that holds it", path.string());
  }
  if (std::filesystem::exists(path, code)) return path;
  return error("{}: no such model directory", path.string());
}

Result<std::string> read_config_text(const std::filesystem::path& path) {
  return base::read_text_file(TRY(config_path(path)), kConfigBytesMax);
}

Result<ModelConfig> load_model_config(const std::filesystem::path& path) {
  const std::string source = TRY(config_path(path))
  .string();
  const json::value document = TRY(base::parse_json(TRY(read_config_text(path)), source));
  return parse_model_config(document, source);
}

}  // namespace ingot::model
