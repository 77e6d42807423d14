#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/model_config.h"

namespace ingot::quantize {

// What becomes of a tensor.
enum class Treatment : uint8_t {
  kKeep,        // its bytes as they are; of an FP8 source decoded to bf16
  kMxfp4,       // `weight` U8 and `weight_scale` U8
  kFp8Channel,  // `weight` F8_E4M3 and `weight_scale` F32, a scale an output row
};
std::string_view name(Treatment treatment);  // "keep", "mxfp4", "fp8-channel"
std::optional<Treatment> find_treatment(std::string_view name);

// Programs that a recipe may make files for.
inline constexpr std::array<std::string_view, 3> kPrograms = {"ingot", "sglang", "vllm"};

// Every module is held against every rule, and every rule against those before it.
inline constexpr size_t kRulesMax = 1000;

// Modules whose name matches `pattern` are treated so. As Quark matches: `*`, `?` and `[...]` as by
// fnmatch(3), over the whole name, `*` across dots. `{mtp}` stands for the index of the MTP layer.
struct RecipeRule {
  std::string pattern;  // "model.layers.{mtp}.*"
  Treatment treatment = Treatment::kKeep;
  bool optional = false;  // may match nothing: "the MTP layer, where there is one"
};

// Which linear layers of a model become what. The first rule that matches a module decides; one
// that no rule matches is an error, so a recipe states what becomes of everything. Embeddings,
// norms and other vectors are never candidates and are kept.
struct Recipe {
  std::string name;
  std::string description;  // one line
  std::vector<RecipeRule> rules;
  // Those of kPrograms that have to load what it makes.
  std::vector<std::string> programs = {kPrograms.begin(), kPrograms.end()};
};

// A recipe file (TOML; docs/formats/recipe.md). Errors name line and column: bad syntax, a key that
// is unknown, missing or of the wrong type, an unknown treatment, a pattern that no module name can
// match or that is written twice, no rule at all or more than kRulesMax, an unknown program.
base::Result<Recipe> parse_recipe(std::string_view text, std::string_view source);

// The recipes that come with the program, sorted, and their files; nothing for another name.
std::span<const std::string_view> recipe_names();
std::optional<std::string_view> recipe_text(std::string_view name);
// The recipe that a family gets when none is asked for.
std::string_view default_recipe(model::Family family);

// A built-in name or else a file. Errors: neither, with the names that exist; a file that takes the
// name of a built-in recipe, since reports tell recipes apart by it.
base::Result<Recipe> load_recipe(const std::string& name_or_file);

}  // namespace ingot::quantize
