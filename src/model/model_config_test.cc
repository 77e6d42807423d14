#include "model/model_config.h"

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <boost/json/serialize.hpp>

#include "base/scratch_directory.h"
#include "model/config_fixture.h"
#include "model/family.h"

namespace ingot::model {
namespace {

using kernels::RopeStyle;
namespace json = base::json;

// The error without the file's name in front of it, which every error has; "accepted" without one.
std::string refusal(const json::value& config) {
  const auto result = parse_model_config(config, "config.json");
  if (result) return "accepted";
  const std::string& message = result.error().message;
  EXPECT_TRUE(message.starts_with("config.json: ")) << message;
  EXPECT_FALSE(message.contains('\n')) << message;
  return message.substr(std::string_view("config.json: ").size());
}

json::object with(json::object config, std::string_view key, std::string_view value) {
  config[key] = json_of(value);
  return config;
}

// The small config with one key set to this JSON.
std::string refusal_with(std::string_view key, std::string_view value) {
  return refusal(with(small_config(), key, value));
}

void expect_refused(std::string_view key, std::string_view value, std::string_view because) {
  const std::string message = refusal_with(key, value);
  EXPECT_TRUE(message.contains(because)) << key << ": " << value << "\n" << message;
}

std::vector<int64_t> full_layers(const ModelConfig& config) {
  std::vector<int64_t> layers;
  for (int64_t i = 0; i < config.num_hidden_layers; ++i) {
    if (config.indexer_type(i) == IndexerType::kFull) layers.push_back(i);
  }
  return layers;
}

TEST(ModelConfig, ReadsGlm52) {
  for (const char* file : {"configs/glm-5.2.json", "configs/glm-5.2-fp8.json"}) {
    const ModelConfig c = parsed(golden_config(file));
    EXPECT_EQ(c.family, Family::kGlmMoeDsa);
    EXPECT_EQ(c.vocab_size, 154880);
    EXPECT_EQ(c.hidden_size, 6144);
    EXPECT_EQ(c.num_hidden_layers, 78);
    EXPECT_EQ(c.num_nextn_predict_layers, 1);
    EXPECT_EQ(c.max_position_embeddings, 1048576);
    EXPECT_EQ(c.num_attention_heads, 64);
    EXPECT_EQ(c.q_lora_rank, 2048);
    EXPECT_EQ(c.kv_lora_rank, 512);
    EXPECT_EQ(c.qk_nope_head_dim, 192);
    EXPECT_EQ(c.qk_rope_head_dim, 64);
    EXPECT_EQ(c.qk_head_dim(), 256);
    EXPECT_EQ(c.v_head_dim, 256);
    EXPECT_EQ(c.rope_theta, 8e6);
    EXPECT_FALSE(c.yarn.has_value());
    EXPECT_EQ(c.rope_style, RopeStyle::kInterleaved);
    EXPECT_EQ(c.rms_norm_eps, 1e-5);
    EXPECT_EQ(c.index_n_heads, 32);
    EXPECT_EQ(c.index_head_dim, 128);
    EXPECT_EQ(c.index_topk, 2048);
    EXPECT_EQ(c.indexer_rope_style, RopeStyle::kInterleaved);
    EXPECT_TRUE(c.index_share_for_mtp_iteration);
    EXPECT_EQ(c.intermediate_size, 12288);
    EXPECT_EQ(c.moe_intermediate_size, 2048);
    EXPECT_EQ(c.first_k_dense_replace, 3);
    EXPECT_TRUE(c.is_dense(2));
    EXPECT_FALSE(c.is_dense(3));
    EXPECT_EQ(c.n_routed_experts, 256);
    EXPECT_EQ(c.n_shared_experts, 1);
    EXPECT_EQ(c.num_experts_per_tok, 8);
    EXPECT_EQ(c.n_group, 1);
    EXPECT_EQ(c.topk_group, 1);
    EXPECT_TRUE(c.norm_topk_prob);
    EXPECT_EQ(c.routed_scaling_factor, 2.5);
    EXPECT_EQ(c.eos_token_ids, (std::vector<int64_t>{154820, 154827, 154829}));
    EXPECT_EQ(c.unread_keys, std::vector<std::string>{});
  }
}

TEST(ModelConfig, ReadsTheListOfUnquantizedModules) {
  EXPECT_TRUE(parsed(golden_config("configs/glm-5.2.json")).unquantized_modules.empty());
  const ModelConfig c = parsed(golden_config("configs/glm-5.2-fp8.json"));
  EXPECT_EQ(c.quant_method, "fp8");
  EXPECT_EQ(c.unquantized_modules.size(), 541U);
  for (const char* key : {"modules_to_not_convert", "exclude", "ignore"}) {
    json::object config = small_config();
    config["quantization_config"] = json::object{{"quant_method", "x"}, {key, {"lm_head"}}};
    EXPECT_EQ(parsed(config).unquantized_modules, std::vector<std::string>{"lm_head"}) << key;
  }
}

TEST(ModelConfig, FullIndexersOfGlm52) {
  const std::vector<int64_t> expected = {0,  1,  2,  6,  10, 14, 18, 22, 26, 30, 34,
                                         38, 42, 46, 50, 54, 58, 62, 66, 70, 74};
  json::object config = golden_config("configs/glm-5.2.json");
  EXPECT_EQ(full_layers(parsed(config)), expected);
  EXPECT_EQ(parsed(config).indexer_type(77), IndexerType::kShared);
  EXPECT_EQ(parsed(config).indexer_type(78), IndexerType::kFull) << "the MTP layer's own";
  config.erase("indexer_types");
  EXPECT_EQ(full_layers(parsed(config)), expected) << "by frequency 4 and offset 3";
  std::string pattern(78, 'S');
  for (const int64_t layer : expected) pattern[static_cast<size_t>(layer)] = 'F';
  config.erase("index_topk_freq");
  config["index_topk_pattern"] = pattern;
  EXPECT_EQ(full_layers(parsed(config)), expected) << "by pattern";
}

TEST(ModelConfig, IndexerListBeatsPatternBeatsFrequency) {
  json::object config = small_config();
  config["num_hidden_layers"] = 6;
  config["indexer_types"] = {"full", "shared", "full", "shared", "shared", "full"};
  config["index_topk_pattern"] = "FFSSSS";
  config["index_topk_freq"] = 3;
  EXPECT_EQ(full_layers(parsed(config)), (std::vector<int64_t>{0, 2, 5}));
  config["indexer_types"] = nullptr;
  EXPECT_EQ(full_layers(parsed(config)), (std::vector<int64_t>{0, 1}));
  config["index_topk_pattern"] = nullptr;
  // max(i - 2 + 1, 0) mod 3 == 0
  EXPECT_EQ(full_layers(parsed(config)), (std::vector<int64_t>{0, 1, 4})) << "offset 2 by default";
  config["index_skip_topk_offset"] = 1;
  EXPECT_EQ(full_layers(parsed(config)), (std::vector<int64_t>{0, 3}));
  config.erase("index_topk_freq");
  EXPECT_EQ(full_layers(parsed(config)).size(), 6U) << "frequency 1 by default";
}

TEST(ModelConfig, RefusesIndexerPatternsThatDoNotFit) {
  expect_refused("indexer_types", R"(["full", "full"])",
                 "\"indexer_types\" describes 2 layers of 3");
  expect_refused("indexer_types", R"(["shared", "full", "full"])", "layer 0 cannot share");
  expect_refused("indexer_types", R"(["full", "half", "full"])", "contains \"half\"");
  expect_refused("indexer_types", R"(["full", 1, "full"])", "contains 1; expected strings");
  expect_refused("indexer_types", R"("full")", "expected a list of strings");
  json::object config = small_config();
  config.erase("indexer_types");
  EXPECT_EQ(refusal(with(config, "index_topk_pattern", R"("FF")")),
            "\"index_topk_pattern\" describes 2 layers of 3");
  EXPECT_EQ(refusal(with(config, "index_topk_pattern", R"("FfS")")),
            "\"index_topk_pattern\" contains \"f\"; expected F or S a layer");
  EXPECT_TRUE(refusal(with(config, "index_topk_pattern", R"("SFF")")).contains("layer 0"));
  EXPECT_TRUE(refusal(with(config, "index_topk_freq", "0")).contains("\"index_topk_freq\" is 0"));
  EXPECT_TRUE(refusal(with(config, "index_skip_topk_offset", "0")).contains("from 1 to"));
}

TEST(ModelConfig, ReadsGlm51WithoutSharing) {
  const ModelConfig c = parsed(golden_config("configs/glm-5.1.json"));
  EXPECT_EQ(c.rope_theta, 1e6);
  EXPECT_EQ(c.max_position_embeddings, 202752);
  EXPECT_EQ(full_layers(c).size(), 78U);
  EXPECT_FALSE(c.index_share_for_mtp_iteration);
  EXPECT_EQ(c.unread_keys, std::vector<std::string>{});
}

TEST(ModelConfig, ReadsGlm47FlashInTheOldStyle) {
  const ModelConfig c = parsed(golden_config("configs/glm-4.7-flash.json"));
  EXPECT_EQ(c.family, Family::kGlm4MoeLite);
  EXPECT_EQ(c.num_hidden_layers, 47);
  EXPECT_EQ(c.num_attention_heads, 20);
  EXPECT_EQ(c.q_lora_rank, 768);
  EXPECT_EQ(c.intermediate_size, 10240);
  EXPECT_EQ(c.moe_intermediate_size, 1536);
  EXPECT_EQ(c.n_routed_experts, 64);
  EXPECT_EQ(c.num_experts_per_tok, 4);
  EXPECT_EQ(c.first_k_dense_replace, 1);
  EXPECT_EQ(c.routed_scaling_factor, 1.8);
  EXPECT_EQ(c.rope_theta, 1e6) << "at top level, rope_scaling null";
  EXPECT_FALSE(c.has_indexer());
  EXPECT_EQ(c.indexer_type(0), IndexerType::kNone);
  EXPECT_EQ(c.indexer_type(47), IndexerType::kNone);
  EXPECT_EQ(c.unread_keys, std::vector<std::string>{});
}

TEST(ModelConfig, ReadsDeepseekWithYarn) {
  for (const auto& [file, family] :
       {std::pair("configs/deepseek-v3.json", Family::kDeepseekV3),
        std::pair("configs/deepseek-v3.2.json", Family::kDeepseekV32)}) {
    const ModelConfig c = parsed(golden_config(file));
    EXPECT_EQ(c.family, family);
    EXPECT_EQ(c.hidden_size, 7168);
    EXPECT_EQ(c.num_attention_heads, 128);
    EXPECT_EQ(c.qk_head_dim(), 192);
    EXPECT_EQ(c.n_group, 8);
    EXPECT_EQ(c.topk_group, 4);
    EXPECT_EQ(c.rope_theta, 10000);
    ASSERT_TRUE(c.yarn.has_value());
    EXPECT_EQ(c.yarn->factor, 40);
    EXPECT_EQ(c.yarn->beta_fast, 32);
    EXPECT_EQ(c.yarn->beta_slow, 1);
    EXPECT_EQ(c.yarn->mscale, 1);
    EXPECT_EQ(c.yarn->mscale_all_dim, 1);
    EXPECT_EQ(c.yarn->original_max_position_embeddings, 4096);
    EXPECT_EQ(c.eos_token_ids, std::vector<int64_t>{1});
    EXPECT_EQ(c.unread_keys, std::vector<std::string>{});
    EXPECT_EQ(c.has_indexer(), family == Family::kDeepseekV32);
    if (c.has_indexer()) {
      EXPECT_EQ(c.indexer_rope_style, RopeStyle::kHalfSplit);
      EXPECT_EQ(c.rope_style, RopeStyle::kInterleaved);
      EXPECT_EQ(full_layers(c).size(), 61U);
    }
  }
}

TEST(ModelConfig, NamesEveryRequiredKeyThatIsMissing) {
  constexpr std::string_view kRequired[] = {
      "vocab_size",
      "hidden_size",
      "intermediate_size",
      "moe_intermediate_size",
      "num_hidden_layers",
      "first_k_dense_replace",
      "num_attention_heads",
      "q_lora_rank",
      "kv_lora_rank",
      "qk_nope_head_dim",
      "qk_rope_head_dim",
      "v_head_dim",
      "n_routed_experts",
      "n_shared_experts",
      "num_experts_per_tok",
      "routed_scaling_factor",
      "index_n_heads",
      "index_head_dim",
      "index_topk",
      "rms_norm_eps",
      "max_position_embeddings",
      "model_type",
      "rope_parameters",
  };
  EXPECT_EQ(refusal(small_config()), "accepted");
  for (const std::string_view key : kRequired) {
    json::object absent = small_config();
    absent.erase(key);
    const std::string_view named = key == "rope_parameters" ? "rope_theta" : key;
    EXPECT_TRUE(refusal(absent).contains("\"" + std::string(named) + "\"")) << refusal(absent);
    json::object null = small_config();
    null[key] = nullptr;
    EXPECT_EQ(refusal(null), refusal(absent)) << "null counts as absent";
  }
}

TEST(ModelConfig, RemovingAnyKeyNamesItOrChangesNothing) {
  for (const char* file :
       {"configs/glm-5.2-fp8.json", "configs/glm-5.1.json", "configs/glm-4.7-flash.json",
        "configs/deepseek-v3.json", "configs/deepseek-v3.2.json"}) {
    const json::object whole = golden_config(file);
    for (const auto& [key, value] : whole) {
      json::object config = whole;
      config.erase(key);
      const std::string message = refusal(config);
      if (message == "accepted") continue;
      const std::string named = key == "rope_parameters" ? "rope_theta" : std::string(key);
      EXPECT_TRUE(message.contains("\"" + named + "\"")) << file << ": " << message;
    }
  }
}

TEST(ModelConfig, RefusesWrongTypes) {
  expect_refused("hidden_size", R"("6144")", "\"hidden_size\" is \"6144\"; expected an integer");
  expect_refused("hidden_size", "72.0", "\"hidden_size\" is");
  expect_refused("hidden_size", "[72]", "\"hidden_size\" is [72]");
  expect_refused("rms_norm_eps", R"("1e-5")", "\"rms_norm_eps\" is \"1e-5\"; expected a number");
  expect_refused("norm_topk_prob", "1", "\"norm_topk_prob\" is 1; expected true or false");
  expect_refused("hidden_act", "7", "\"hidden_act\" is 7; expected a string");
  expect_refused("model_type", "7", "\"model_type\" is 7; expected a string");
  expect_refused("rope_parameters", "[]", "\"rope_parameters\" is []; expected an object");
  expect_refused("quantization_config", "7", "\"quantization_config\" is 7; expected an object");
  expect_refused("quantization_config", R"({"ignore": "all"})", "\"ignore\" is \"all\"");
  for (const char* text : {"[]", "7", "null", "\"config\""}) {
    EXPECT_EQ(refusal(json_of(text)), "not a JSON object") << text;
  }
}

TEST(ModelConfig, RefusesValuesOutOfRange) {
  for (const char* key :
       {"vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "q_lora_rank",
        "kv_lora_rank", "qk_nope_head_dim", "v_head_dim", "intermediate_size", "n_routed_experts",
        "moe_intermediate_size", "index_n_heads", "index_head_dim", "index_topk",
        "max_position_embeddings", "num_experts_per_tok"}) {
    for (const char* value : {"0", "-1", "4294967296", "9223372036854775807",
                              "-9223372036854775808", "18446744073709551615", "1e300"}) {
      expect_refused(key, value, "\"" + std::string(key) + "\" is");
    }
  }
  expect_refused("num_nextn_predict_layers", "2", "\"num_nextn_predict_layers\" is 2");
  expect_refused("qk_rope_head_dim", "7", "must be even");
  expect_refused("rms_norm_eps", "-1e-5", "\"rms_norm_eps\"");
  expect_refused("routed_scaling_factor", "1e7", "\"routed_scaling_factor\"");
  expect_refused("num_experts_per_tok", "5", "expected an integer from 1 to 4");
}

TEST(ModelConfig, RefusesANumberThatNoDoubleHolds) {
  const auto document = base::parse_json(R"({"rms_norm_eps": 1e999})", "config.json");
  ASSERT_FALSE(document.has_value());
  EXPECT_TRUE(document.error().message.starts_with("config.json")) << document.error().message;
}

TEST(ModelConfig, KeepsLongValuesOutOfErrorLines) {
  const std::string letters(5000, 'x');
  for (const char* key : {"hidden_size", "model_type", "hidden_act", "index_topk_pattern"}) {
    json::object config = small_config();
    config[key] = letters;
    config.erase("indexer_types");
    EXPECT_LT(refusal(config).size(), 300U) << key;
  }
  json::object config = small_config();
  config["rope_parameters"] = json::object{{"rope_theta", 1e4}, {letters, 1}};
  EXPECT_LT(refusal(config).size(), 300U);
}

TEST(ModelConfig, ErrorsStayInOneLine) {
  for (const char* key : {"model_type", "hidden_act", "scoring_func", "hidden_size"}) {
    expect_refused(key, R"("a\nb\u001b[2J")", key);  // refusal() looks for line breaks
  }
  expect_refused("indexer_types", R"(["full\n", "full", "full"])", "indexer_types");
  expect_refused("rope_parameters", R"({"rope_theta": 1e4, "rope_type": "a\nb"})", "rope of type");
  expect_refused("rope_parameters", R"({"rope_theta": 1e4, "a\nb": 1})", "is unknown there");
}

TEST(ModelConfig, RefusesContradictions) {
  expect_refused("qk_head_dim", "24", "\"qk_head_dim\" is 24, but qk_nope_head_dim");
  EXPECT_EQ(refusal_with("qk_head_dim", "20"), "accepted");
  EXPECT_EQ(refusal_with("head_dim", "9999"), "accepted") << "published files have nonsense there";
  expect_refused("rope_theta", "1e6", "is 10000 there and 1000000 at top level");
  EXPECT_EQ(refusal_with("rope_theta", "1e4"), "accepted");
  expect_refused("n_group", "3", "4 experts cannot form 3 groups");
  expect_refused("n_group", "4", "cannot form 4 groups");  // groups of one have no top two
  expect_refused("topk_group", "2", "\"topk_group\" is 2");
  expect_refused("index_head_dim", "6", "less than the 8 values that rope rotates");
  expect_refused("eos_token_id", "160", "\"eos_token_id\"");
  expect_refused("eos_token_id", "[1, -1]", "\"eos_token_id\"");
  expect_refused("eos_token_id", R"(["</s>"])", "\"eos_token_id\"");
}

TEST(ModelConfig, ComparesLayerTypesWithTheNumberOfDenseLayers) {
  constexpr const char* kKey = "mlp_layer_types";
  EXPECT_EQ(refusal_with(kKey, R"(["dense", "sparse", "sparse"])"), "accepted");
  expect_refused(kKey, R"(["dense", "dense", "sparse"])",
                 "\"first_k_dense_replace\" is 1, but \"mlp_layer_types\" has 2 dense layers");
  expect_refused(kKey, R"(["dense", "sparse"])", "3 in all");
  expect_refused(kKey, R"(["sparse", "dense", "sparse"])", "then \"sparse\" ones");
  expect_refused(kKey, R"(["dense", "sparse", "moe"])", "then \"sparse\" ones");
  json::object config = small_config();
  config.erase("first_k_dense_replace");
  EXPECT_EQ(parsed(with(config, kKey, R"(["dense", "dense", "sparse"])")).first_k_dense_replace, 2);
  EXPECT_EQ(parsed(with(config, kKey, R"(["sparse", "sparse", "sparse"])")).first_k_dense_replace,
            0);
  // A model cut short may keep the number of its origin.
  config["first_k_dense_replace"] = 5;
  EXPECT_EQ(refusal(with(config, kKey, R"(["dense", "dense", "dense"])")), "accepted");
}

TEST(ModelConfig, ReadsRopeInBothStyles) {
  json::object config = small_config();
  config.erase("rope_parameters");
  config["rope_theta"] = 500;
  EXPECT_EQ(parsed(config).rope_theta, 500);
  config["rope_scaling"] = json::object{{"type", "default"}};
  EXPECT_EQ(parsed(config).rope_theta, 500);
  const json::object yarn{{"factor", 4}, {"original_max_position_embeddings", 16}};
  for (const char* key : {"type", "rope_type"}) {
    json::object scaling = yarn;
    scaling[key] = "yarn";
    config["rope_scaling"] = scaling;
    ASSERT_TRUE(parsed(config).yarn.has_value()) << key;
    EXPECT_EQ(parsed(config).yarn->factor, 4);
    EXPECT_EQ(parsed(config).yarn->beta_fast, 32);
    EXPECT_EQ(parsed(config).yarn->mscale_all_dim, 0);
  }
  config.erase("rope_theta");
  EXPECT_TRUE(refusal(config).contains("no \"rope_theta\""));
  config["rope_theta"] = 500;
  config["rope_interleave"] = false;
  config["indexer_rope_interleave"] = false;
  EXPECT_EQ(parsed(config).rope_style, RopeStyle::kHalfSplit);
  EXPECT_EQ(parsed(config).indexer_rope_style, RopeStyle::kHalfSplit);
}

TEST(ModelConfig, RefusesRotationsThatAreNotComputed) {
  constexpr const char* kKey = "rope_parameters";
  expect_refused(kKey, R"({"rope_theta": 1e4, "rope_type": "linear"})", "rope of type \"linear\"");
  expect_refused(kKey, R"({"rope_theta": 1e4, "factor": 2})", "\"factor\" is unknown there");
  expect_refused(kKey, R"({"rope_theta": 1e4, "rope_type": "yarn"})", "\"factor\" is missing");
  expect_refused(kKey, R"({"rope_theta": 1e4, "rope_type": "yarn", "factor": 4})",
                 "\"original_max_position_embeddings\" is missing");
  expect_refused(kKey, R"({"rope_theta": 1e4, "partial_rotary_factor": 0.5})",
                 "\"partial_rotary_factor\" is");
  expect_refused(kKey, R"({"rope_theta": 0.5})", "no \"rope_theta\" of at least 1");
  expect_refused("partial_rotary_factor", "0.5", "\"partial_rotary_factor\" is");
  expect_refused("rope_scaling",
                 R"({"type": "yarn", "factor": 4, "original_max_position_embeddings": 16})",
                 "\"rope_scaling\" and \"rope_parameters\"");
}

TEST(ModelConfig, RefusesChoicesThatAreNotComputed) {
  expect_refused("hidden_act", R"("gelu")", "\"hidden_act\" is \"gelu\"; Ingot computes only");
  expect_refused("scoring_func", R"("softmax")", "\"scoring_func\" is \"softmax\"");
  expect_refused("topk_method", R"("greedy")", "\"topk_method\" is \"greedy\"");
  expect_refused("attention_bias", "true", "\"attention_bias\" is true; Ingot computes only false");
  expect_refused("tie_word_embeddings", "true", "\"tie_word_embeddings\" is true");
  expect_refused("moe_layer_freq", "2", "\"moe_layer_freq\" is 2");
  expect_refused("model_type", R"("glm5_next")",
                 "\"model_type\" is \"glm5_next\"; Ingot knows glm_moe_dsa, glm4_moe_lite");
}

TEST(ModelConfig, RefusesHostileSizes) {
  json::object config = small_config();
  config["num_hidden_layers"] = 1024;
  config["n_routed_experts"] = 8192;
  config.erase("indexer_types");
  EXPECT_TRUE(refusal(config).contains("1024 layers of 8192 experts are more than"))
      << refusal(config);
}

TEST(ModelConfig, RefusesArithmeticThatItDoesNotHave) {
  json::object config = small_config();
  config["swiglu_limit"] = nullptr;
  config["mlp_bias"] = false;
  EXPECT_TRUE(parsed(config).unread_keys.empty());
  config["swiglu_limit"] = 10.0;
  EXPECT_TRUE(refusal(config).contains("\"swiglu_limit\" is 1E1, which asks")) << refusal(config);
  config.erase("swiglu_limit");
  config["quantization_config"] = json::object{{"algo_config", json::object{{"name", "rotation"}}}};
  EXPECT_TRUE(refusal(config).contains("\"algo_config\"")) << refusal(config);
  config["quantization_config"] = json::object{{"weight_block_size", json::array{64, 64}}};
  EXPECT_TRUE(refusal(config).contains("\"weight_block_size\"")) << refusal(config);
  config["quantization_config"] = json::object{{"weight_block_size", json::array{128, 128}}};
  EXPECT_TRUE(parsed(config).unread_keys.empty());
}

TEST(ModelConfig, ListsKeysThatItDoesNotKnow) {
  json::object config = small_config();
  config["new_trick"] = 10;
  config["torch_dtype"] = "bfloat16";
  config["quantization_config"] = json::object{{"quant_method", "fp8"}, {"newer_trick", true}};
  const std::vector<std::string> unread = {"quantization_config.newer_trick", "new_trick"};
  EXPECT_EQ(parsed(config).unread_keys, unread);
  // Settings of an indexer in a family without one.
  json::object flash = golden_config("configs/glm-4.7-flash.json");
  flash["index_topk"] = 2048;
  EXPECT_EQ(parsed(flash).unread_keys, std::vector<std::string>{"index_topk"});
}

TEST(ModelConfig, FindsTheFileInADirectory) {
  const base::ScratchDirectory scratch;
  EXPECT_TRUE(load_model_config(scratch.path()).error().message.contains("no config.json"));
  EXPECT_TRUE(load_model_config(scratch / "absent").error().message.contains("no such model"));
  const auto write = [&](const char* name, std::string_view text) {
    std::ofstream(scratch / name) << text;
  };
  write("ingot_quantization.json", "{}");
  EXPECT_TRUE(load_model_config(scratch.path())
                  .error()
                  .message.contains(
                      "an unfinished quantization; give the same `ingot quantize` command again"));
  write("config.json", json::serialize(small_config()));
  EXPECT_EQ(load_model_config(scratch.path()).value().vocab_size, 160);
  EXPECT_EQ(load_model_config(scratch / "config.json").value().vocab_size, 160);
  write("broken.json", R"({"vocab_size": )");
  const auto broken = load_model_config(scratch / "broken.json");
  ASSERT_FALSE(broken.has_value());
  EXPECT_TRUE(broken.error().message.contains("broken.json")) << broken.error().message;
  write("twice.json", R"({"vocab_size": 1, "vocab_size": 2})");
  EXPECT_TRUE(load_model_config(scratch / "twice.json").error().message.contains("vocab_size"));
  write("large.json", std::string((16 << 20) + 1, ' '));
  EXPECT_TRUE(load_model_config(scratch / "large.json").error().message.contains("large.json"));
}

TEST(Family, IsFoundByItsModelType) {
  for (const auto family :
       {Family::kGlmMoeDsa, Family::kGlm4MoeLite, Family::kDeepseekV3, Family::kDeepseekV32}) {
    ASSERT_NE(find_family(name(family)), nullptr);
    EXPECT_EQ(find_family(name(family))->family, family);
    EXPECT_TRUE(supported_model_types().contains(name(family)));
  }
  EXPECT_EQ(find_family("llama"), nullptr);
  EXPECT_EQ(find_family(""), nullptr);
}

}  // namespace
}  // namespace ingot::model
