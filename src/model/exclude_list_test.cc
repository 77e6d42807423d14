#include "model/exclude_list.h"

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"

namespace ingot::model {
namespace {

// Warnings for a small model whose config lists these modules as unquantized.
std::vector<Finding> warnings(std::initializer_list<base::json::value_ref> modules,
                              const std::vector<TensorSpec>& tensors) {
  const base::ScratchDirectory scratch;
  auto config = small_config();
  config["quantization_config"] = base::json::object{{"exclude", modules}};
  write_sparse_checkpoint(scratch.path(), tensors);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  return plan_load(parsed(config), checkpoint, {}).value().findings;
}

std::vector<Finding> warnings(std::initializer_list<base::json::value_ref> modules) {
  return warnings(modules, published_tensors(parsed(small_config())));
}

TEST(ExcludeList, AcceptsModulesTensorsAndWhatContainsThem) {
  EXPECT_TRUE(warnings({"lm_head", "model.embed_tokens", "model.layers.0.self_attn.q_a_proj",
                        "model.layers.1.self_attn.indexer.k_norm",
                        "model.layers.1.self_attn.indexer.k_norm.bias",
                        "model.layers.1.mlp.gate.e_score_correction_bias",
                        "model.layers.1.mlp.gate.weight", "model.layers.1.mlp.experts.3",
                        "model.layers.1.mlp.experts", "model.layers.3", "model.layers", "model"})
                  .empty());
}

TEST(ExcludeList, DoesNotComparePatterns) {
  EXPECT_TRUE(warnings({"re:.*self_attn.*", "*nothing*", "model.layers.9?", "x[0-9]"}).empty());
}

TEST(ExcludeList, NamesTheNearestModuleForADeadEntry) {
  const auto nearest = [](const char* entry) {
    const auto found = warnings({entry});
    CHECK(found.size() == 1);
    EXPECT_EQ(found[0].severity, Severity::kWarning);
    EXPECT_EQ(found[0].code, "dead_exclude_entry");
    EXPECT_EQ(found[0].subject, entry);
    const std::string& remedy = found[0].remedy;
    if (!remedy.starts_with("perhaps ")) return std::string("none");
    return remedy.substr(8, remedy.find(' ', 8) - 8);
  };
  EXPECT_EQ(nearest("model.layers.1.self_attn.indexers_proj"),
            "model.layers.1.self_attn.indexer.weights_proj");
  EXPECT_EQ(nearest("model.layers.0.self_attn.q_a_projection"),
            "model.layers.0.self_attn.q_a_proj");
  EXPECT_EQ(nearest("lm_heads"), "lm_head");
  EXPECT_EQ(nearest("model.layers.77.self_attn.q_a_proj"), "none");
  EXPECT_EQ(nearest(""), "none");
  EXPECT_EQ(nearest("."), "none");
}

TEST(ExcludeList, NamesListedModulesThatAreQuantized) {
  auto tensors = published_tensors(parsed(small_config()));
  const std::string module = "model.layers.1.mlp.shared_experts.up_proj";
  tensor_named(tensors, module + ".weight").dtype = DType::kF8E4M3;
  tensors.push_back({.name = module + ".weight_scale", .dtype = DType::kF32, .shape = {40, 1}});
  const auto found = warnings({"lm_head", "model", base::json::value_ref(module)}, tensors);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].severity, Severity::kWarning);
  EXPECT_EQ(found[0].code, "excluded_but_quantized");
  EXPECT_EQ(found[0].subject, module);
  EXPECT_TRUE(found[0].message.contains("fp8_channel")) << found[0].line();
}

// What made a bf16 MTP layer be built as MXFP4: stored unquantized, and not in the list.
TEST(ExcludeList, NamesUnquantizedModulesThatItDoesNotCover) {
  auto tensors = published_tensors(parsed(small_config()));
  const std::string quantized = "model.layers.1.mlp.shared_experts.up_proj";
  tensor_named(tensors, quantized + ".weight").dtype = DType::kF8E4M3;
  tensors.push_back({.name = quantized + ".weight_scale", .dtype = DType::kF32, .shape = {40, 1}});
  const auto unlisted = [&](std::initializer_list<base::json::value_ref> entries) {
    std::set<std::string> subjects;
    for (const Finding& finding : warnings(entries, tensors)) {
      if (finding.code == "unlisted_unquantized") subjects.insert(finding.subject);
    }
    return subjects;
  };
  EXPECT_TRUE(unlisted({"lm_head", "model"}).empty());
  EXPECT_TRUE(unlisted({"lm_head", "*layers*"}).empty());
  EXPECT_TRUE(unlisted({"re:.*"}).empty()) << "expressions are not judged";
  const auto all_but_head = unlisted({"model"});
  EXPECT_EQ(all_but_head, std::set<std::string>{"lm_head"});
  const auto attention = unlisted({"lm_head", "model.layers.0", "model.layers.1.mlp"});
  EXPECT_TRUE(attention.contains("model.layers.1.self_attn.q_a_proj"));
  EXPECT_FALSE(attention.contains("model.layers.1.mlp.gate"));
  EXPECT_FALSE(attention.contains(quantized));
}

TEST(ExcludeList, WithManyDeadEntriesIsStillQuick) {
  auto config = small_config();
  base::json::array modules;
  for (int i = 0; i < 20'000; ++i) {
    modules.emplace_back(fmt::format("model.layers.1.mlp.experts.{}x", i));
  }
  modules.emplace_back("model.layers.1.mlp." + std::string(1'000'000, 'x'));
  const size_t num_modules = modules.size();
  config["quantization_config"] = base::json::object{{"exclude", std::move(modules)}};
  const base::ScratchDirectory scratch;
  write_sparse_checkpoint(scratch.path(), published_tensors(parsed(small_config())));
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  EXPECT_EQ(plan_load(parsed(config), checkpoint, {}).value().findings.size(), num_modules);
}

TEST(ExcludeList, DistanceFavoursForgottenParts) {
  EXPECT_EQ(name_distance("", ""), 0U);
  EXPECT_EQ(name_distance("abc", "abc"), 0U);
  EXPECT_EQ(name_distance("abc", "axbc"), 1U);
  EXPECT_EQ(name_distance("axbc", "abc"), 2U);
  EXPECT_EQ(name_distance("abc", "axc"), 3U);
  EXPECT_EQ(name_distance("", "abc"), 3U);
  EXPECT_EQ(name_distance("abc", ""), 6U);
}

}  // namespace
}  // namespace ingot::model
