// A recipe file: what is accepted is whole, means one thing, and can be asked about any module;
// what is refused is refused in one line that names the file.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "quantize/recipe.h"
#include "quantize/recipe_matcher.h"

namespace {

using ingot::quantize::Recipe;
using ingot::quantize::RecipeMatcher;
using ingot::quantize::RecipeRule;

void check_line(std::string_view line) {
  CHECK(!line.empty());
  CHECK(std::ranges::none_of(line, [](char c) { return static_cast<uint8_t>(c) < 0x20; }), line);
}

void check_whole(const Recipe& recipe) {
  check_line(recipe.name);
  check_line(recipe.description);
  CHECK(!recipe.rules.empty());
  std::set<std::string_view> patterns;
  for (const RecipeRule& rule : recipe.rules) {
    check_line(rule.pattern);
    CHECK(patterns.insert(rule.pattern).second, rule.pattern);
    CHECK(!name(rule.treatment).empty());
  }
}

void check_decisions(const Recipe& recipe) {
  const std::vector<std::string> modules = {"lm_head", "model.layers.0.self_attn.q_a_proj",
                                            "model.layers.3.mlp.experts.255.gate_proj",
                                            "model.layers.78.eh_proj"};
  RecipeMatcher matcher(recipe, 78);
  bool any_needed = false;
  for (const std::string& module : modules) {
    const RecipeRule* rule = matcher.decide(module);
    CHECK(rule == nullptr ||
          (rule >= recipe.rules.data() && rule < recipe.rules.data() + recipe.rules.size()));
    CHECK(matcher.decide(module) == rule, module);
  }
  const auto status = matcher.check_every_rule_decided(modules);
  if (!status) check_line(status.error().message);
  for (const RecipeRule& rule : recipe.rules) any_needed = any_needed || !rule.optional;
  CHECK(any_needed || status.has_value(), "optional rules may match nothing");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto recipe = ingot::quantize::parse_recipe(text, "recipe.toml");
  if (!recipe) {
    CHECK(recipe.error().message.starts_with("recipe.toml:"), recipe.error().message);
    check_line(recipe.error().message);
    return 0;
  }
  check_whole(*recipe);
  check_decisions(*recipe);
  return 0;
}
