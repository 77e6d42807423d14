#include "quantize/recipe_matcher.h"

#include <gtest/gtest.h>

namespace ingot::quantize {
namespace {

Recipe recipe_of(std::vector<RecipeRule> rules) {
  return {.name = "mine", .description = "a test", .rules = std::move(rules)};
}

TEST(RecipeMatcher, TheFirstRuleDecides) {
  const Recipe recipe = recipe_of({{"*self_attn*", Treatment::kKeep},
                                   {"*.o_proj", Treatment::kMxfp4},
                                   {"*mlp.gate", Treatment::kFp8Channel},
                                   {"*", Treatment::kMxfp4}});
  RecipeMatcher matcher(recipe, 7);
  EXPECT_EQ(matcher.decide("model.layers.0.self_attn.o_proj"), recipe.rules.data());
  EXPECT_EQ(matcher.decide("model.layers.0.o_proj"), &recipe.rules[1]);
  EXPECT_EQ(matcher.decide("model.layers.0.mlp.gate"), &recipe.rules[2]);
  EXPECT_EQ(matcher.decide("model.layers.0.mlp.gate_proj"), &recipe.rules[3]);
  EXPECT_EQ(matcher.decide("lm_head"), &recipe.rules[3]);
  EXPECT_TRUE(matcher.check_every_rule_decided({}).has_value());
}

// The names on which the published patterns turn.
TEST(RecipeMatcher, DenseProjectionsAreNotThoseOfExperts) {
  const Recipe recipe = recipe_of({{"*mlp.gate_proj", Treatment::kKeep}});
  RecipeMatcher matcher(recipe, 7);
  EXPECT_NE(matcher.decide("model.layers.0.mlp.gate_proj"), nullptr);
  EXPECT_EQ(matcher.decide("model.layers.3.mlp.experts.7.gate_proj"), nullptr);
  EXPECT_EQ(matcher.decide("model.layers.3.mlp.shared_experts.gate_proj"), nullptr);
}

TEST(RecipeMatcher, MtpIsALayerIndex) {
  const Recipe recipe = recipe_of({{"model.layers.{mtp}.*", Treatment::kKeep}});
  RecipeMatcher matcher(recipe, 7);
  EXPECT_EQ(matcher.decide("model.layers.7.eh_proj"), recipe.rules.data());
  EXPECT_EQ(matcher.decide("model.layers.77.eh_proj"), nullptr);
  EXPECT_EQ(matcher.decide("model.layers.1.mlp.experts.7.gate_proj"), nullptr);
}

TEST(RecipeMatcher, NamesARuleThatMatchesNothing) {
  const std::vector<std::string> modules = {"lm_head", "model.layers.0.self_attn.q_a_proj",
                                            "model.layers.0.mlp.gate"};
  const Recipe recipe = recipe_of(
      {{"model.layers.{mtp}.*", Treatment::kKeep, true}, {"*self_atn*", Treatment::kKeep}});
  RecipeMatcher matcher(recipe, 7);
  for (const std::string& module : modules) EXPECT_EQ(matcher.decide(module), nullptr);
  const auto status = matcher.check_every_rule_decided(modules);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().message,
            "recipe mine: \"*self_atn*\" matches no linear layer of this model, the nearest is "
            "model.layers.0.self_attn.q_a_proj; correct it, or write \"optional = true\" if it may "
            "match nothing");
}

TEST(RecipeMatcher, NamesARuleThatCannotDecide) {
  const Recipe recipe = recipe_of({{"*", Treatment::kKeep}, {"*experts*", Treatment::kMxfp4}});
  RecipeMatcher matcher(recipe, 7);
  matcher.decide("model.layers.1.mlp.experts.0.up_proj");
  const auto status = matcher.check_every_rule_decided({});
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.contains("\"*experts*\"")) << status.error().message;
  EXPECT_TRUE(status.error().message.contains("move it up")) << status.error().message;
}

TEST(RecipeMatcher, DistanceOfAPattern) {
  EXPECT_EQ(pattern_distance("", ""), 0U);
  EXPECT_EQ(pattern_distance("*", "anything"), 0U);
  EXPECT_EQ(pattern_distance("*mlp.gate", "model.layers.0.mlp.gate"), 0U);
  EXPECT_EQ(pattern_distance("*mlp.gat", "model.layers.0.mlp.gate"), 1U);
  EXPECT_EQ(pattern_distance("lm_heads", "lm_head"), 1U);
  EXPECT_EQ(pattern_distance("lm?head", "lm_head"), 0U);
  EXPECT_EQ(pattern_distance("ln_head", "lm_head"), 1U);
  EXPECT_EQ(pattern_distance("abc", ""), 3U);
  EXPECT_EQ(pattern_distance("", "abc"), 3U);
}

}  // namespace
}  // namespace ingot::quantize
