#include "quantize/recipe.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/output_file.h"
#include "base/scratch_directory.h"
#include "model/config_fixture.h"

namespace ingot::quantize {
namespace {

constexpr const char* kHead = "name = \"mine\"\ndescription = \"a test\"\n";

std::string rule(std::string_view pattern, std::string_view treatment = "keep",
                 std::string_view more = "") {
  return fmt::format("[[rules]]\npattern = \"{}\"\ntreatment = \"{}\"\n{}\n", pattern, treatment,
                     more);
}

// The error of a recipe that must be refused, which is one line and names its place.
std::string refusal(const std::string& text) {
  const auto recipe = parse_recipe(text, "mine.toml");
  if (recipe.has_value()) return "accepted";
  EXPECT_TRUE(recipe.error().message.starts_with("mine.toml:")) << recipe.error().message;
  EXPECT_FALSE(recipe.error().message.contains('\n')) << recipe.error().message;
  return recipe.error().message;
}

TEST(Recipe, ReadsRulesInOrder) {
  const auto recipe =
      parse_recipe(std::string(kHead) + rule("model.layers.{mtp}.*", "keep", "optional = true") +
                       rule("*.experts.*", "mxfp4") + rule("*", "fp8-channel"),
                   "mine.toml");
  ASSERT_TRUE(recipe.has_value()) << recipe.error().message;
  EXPECT_EQ(recipe->name, "mine");
  EXPECT_EQ(recipe->description, "a test");
  ASSERT_EQ(recipe->rules.size(), 3U);
  EXPECT_EQ(recipe->rules[0].pattern, "model.layers.{mtp}.*");
  EXPECT_EQ(recipe->rules[0].treatment, Treatment::kKeep);
  EXPECT_TRUE(recipe->rules[0].optional);
  EXPECT_EQ(recipe->rules[1].treatment, Treatment::kMxfp4);
  EXPECT_FALSE(recipe->rules[1].optional);
  EXPECT_EQ(recipe->rules[2].treatment, Treatment::kFp8Channel);
}

TEST(Recipe, RefusalsSayWhereAndWhat) {
  const std::string head = kHead;
  const std::string pair = "pattern = \"*\"\ntreatment = \"keep\"\n";
  const std::pair<std::string, const char*> cases[] = {
      {head + "[[rules]\n", "mine.toml:3:9: not TOML: "},
      {head + "[[rules]]\npattern = \"\xFF\"\n", "mine.toml:4:11: not TOML: "},
      {head + "color = 1\n" + rule("*"), "mine.toml:3:1: unknown key \"color\""},
      {head + "\"a\\nb\" = 1\n" + rule("*"), "unknown key \"a?b\""},
      {head + "rules = tru\x01", "saw 'tru?"},
      {"description = \"a\"\n" + rule("*"), "\"name\" is missing"},
      {"name = \"a\"\n" + rule("*"), "\"description\" is missing"},
      {"name = 1\ndescription = \"a\"\n" + rule("*"), "mine.toml:1:8: \"name\" is not a line"},
      {"name = \"\"\ndescription = \"a\"\n" + rule("*"), "\"name\" is not a line of text"},
      {"name = \"a\\nb\"\ndescription = \"a\"\n" + rule("*"), "\"name\" is not a line of text"},
      {head, "no rules"},
      {head + "rules = []\n", "mine.toml:3:9: no rules"},
      {head + "rules = 3\n", "mine.toml:3:9: no rules"},
      {head + "rules = [3]\n", "mine.toml:3:10: a rule is a table"},
      {head + "[[rules]]\ntreatment = \"keep\"\n", "\"pattern\" is missing"},
      {head + "[[rules]]\npattern = \"*\"\n", "mine.toml:3:1: \"treatment\" is missing"},
      {head + "[[rules]]\n" + pair + "when = 1\n", "mine.toml:6:1: unknown key \"when\""},
      {head + "[[rules]]\n" + pair + "optional = 1\n", "mine.toml:6:12: \"optional\" is true or"},
      {head + rule("*", "mxfp8"),
       "mine.toml:5:13: unknown treatment \"mxfp8\"; use one of keep, mxfp4, fp8-channel"},
      {head + rule("*", "Keep"), "unknown treatment \"Keep\""},
      {head + rule("*") + rule("a") + rule("*"), "pattern \"*\" appears twice"},
      {head + rule("model.layers.{layer}.*"), "braces hold only {mtp}"},
      {head + rule("re:^model"), "pattern \"re:^model\" can match no module"},
      {head + rule("mlp\\\\.gate"), "can match no module"},
      {head + rule("lm_head "), "can match no module"},
      {head + "loaders = []\n" + rule("*"),
       "mine.toml:3:11: \"loaders\" lists some of ingot, sglang"},
      {head + "loaders = \"ingot\"\n" + rule("*"), "\"loaders\" lists some of"},
      {head + "loaders = [\"ingot\", \"llama\"]\n" + rule("*"), "mine.toml:3:21: \"loaders\""},
      {head + "loaders = [\"vllm\", \"vllm\"]\n" + rule("*"), "each once"},
  };
  for (const auto& [text, expected] : cases) {
    const std::string message = refusal(text);
    EXPECT_TRUE(message.contains(expected)) << message << "\nshould say: " << expected;
  }
}

TEST(Recipe, SaysForWhichProgramsItIs) {
  const std::vector<std::string> all = {"ingot", "sglang", "vllm"};
  EXPECT_EQ(parse_recipe(kHead + rule("*"), "mine.toml").value().programs, all);
  const std::vector<std::string> one = {"ingot"};
  const std::string text = std::string(kHead) + "loaders = [\"ingot\"]\n" + rule("*");
  EXPECT_EQ(parse_recipe(text, "mine.toml").value().programs, one);
}

TEST(Recipe, HasAtMostAThousandRules) {
  std::string text = kHead;
  for (int i = 0; i < 1000; ++i) text += rule(fmt::format("a{}", i));
  EXPECT_TRUE(parse_recipe(text, "mine.toml").has_value());
  EXPECT_TRUE(refusal(text + rule("b")).contains("1001 rules; a recipe has at most 1000"));
}

TEST(Recipe, DeepNestingIsAnErrorAndNotACrash) {
  const std::string text = std::string(kHead) + "rules = " + std::string(100000, '[');
  EXPECT_TRUE(refusal(text).contains("not TOML")) << refusal(text);
  EXPECT_TRUE(refusal(std::string((1 << 20) + 1, '#')).contains("bytes"));
}

TEST(Recipe, BuiltInRecipesAreWellFormed) {
  for (const char* expected : {"amd-glm-5", "amd-glm-5.2", "amd-glm-5.2-attn-fp8", "deepseek-v3.2",
                               "experts-mxfp4-rest-fp8", "experts-only", "glm-4.7-flash"}) {
    EXPECT_NE(std::ranges::find(recipe_names(), expected), recipe_names().end()) << expected;
  }
  EXPECT_TRUE(std::ranges::is_sorted(recipe_names()));
  for (const std::string_view built_in : recipe_names()) {
    const auto recipe = load_recipe(std::string(built_in));
    ASSERT_TRUE(recipe.has_value()) << recipe.error().message;
    EXPECT_EQ(recipe->name, built_in) << "the file and the recipe have one name";
    for (const RecipeRule& rule : recipe->rules) {
      // Of families with and without an indexer, where the recipe is for any.
      const bool may_be_absent =
          rule.pattern.contains("{mtp}") ||
          (built_in == "experts-mxfp4-rest-fp8" && rule.pattern.contains("indexer"));
      EXPECT_EQ(rule.optional, may_be_absent) << built_in << " " << rule.pattern;
    }
  }
  EXPECT_FALSE(recipe_text("amd-glm-6").has_value());
}

TEST(Recipe, EveryFamilyHasADefault) {
  using enum model::Family;
  EXPECT_EQ(default_recipe(kGlmMoeDsa), "amd-glm-5.2");
  EXPECT_EQ(default_recipe(kGlm4MoeLite), "glm-4.7-flash");
  EXPECT_EQ(default_recipe(kDeepseekV3), "deepseek-v3.2");
  EXPECT_EQ(default_recipe(kDeepseekV32), "deepseek-v3.2");
  for (const auto family : {kGlmMoeDsa, kGlm4MoeLite, kDeepseekV3, kDeepseekV32}) {
    EXPECT_TRUE(recipe_text(default_recipe(family)).has_value());
  }
}

TEST(Recipe, LoadsFilesAndNamesWhatExists) {
  const base::ScratchDirectory scratch;
  const std::string path = (scratch / "mine.toml").string();
  ASSERT_TRUE(base::write_text_file(path, kHead + rule("*")).has_value());
  const auto recipe = load_recipe(path);
  ASSERT_TRUE(recipe.has_value()) << recipe.error().message;
  EXPECT_EQ(recipe->name, "mine");

  const auto missing = load_recipe((scratch / "other.toml").string());
  ASSERT_FALSE(missing.has_value());
  EXPECT_TRUE(missing.error().message.contains("the recipes are amd-glm-5, amd-glm-5.2, "))
      << missing.error().message;
  EXPECT_FALSE(load_recipe("").has_value());
  EXPECT_FALSE(load_recipe(scratch.path().string()).has_value());

  ASSERT_TRUE(base::write_text_file(path, std::string(*recipe_text("experts-only"))).has_value());
  const auto copy = load_recipe(path);
  ASSERT_FALSE(copy.has_value());
  EXPECT_TRUE(copy.error().message.contains("built-in")) << copy.error().message;
}

}  // namespace
}  // namespace ingot::quantize
