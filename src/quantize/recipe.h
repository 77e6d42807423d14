#pragma once

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

// Modules whose name matches `pattern` (fnmatch(3), as Quark matches) are treated so.
struct RecipeRule {
  std::string pattern;
  Treatment treatment;
  bool optional = false;  // may match nothing: "the MTP layer, where there is one"
};

// Which linear layers of a model become what. The first rule that matches a module decides; one
// that no rule matches is an error, so a recipe states what becomes of everything. Embeddings,
// norms and other vectors are never candidates and are kept.
struct Recipe {
  std::string name;
  std::string description;  // one line
  std::vector<RecipeRule> rules;
};

// A recipe file (TOML). Errors name line and column: bad syntax, an unknown key or treatment, no
// rule at all, a pattern that is written twice.
base::Result<Recipe> parse_recipe(std::string_view text, std::string_view source);

// The published recipes, by name.
std::span<const std::string_view> recipe_names();
std::optional<std::string_view> recipe_text(std::string_view name);
// The recipe that a family gets when none is asked for.
std::string_view default_recipe(model::Family family);

// A built-in name or else a file. Errors: neither, with the names that exist.
base::Result<Recipe> load_recipe(const std::string& name_or_file);

}  // namespace ingot::quantize
