#pragma once

#include <span>
#include <string_view>

namespace ingot::quantize {

// One file of src/quantize/recipes, as the build embeds it.
struct RecipeText {
  std::string_view name;  // of the file, without ".toml"
  std::string_view text;
};

// All of them, sorted by name. Defined in a file that CMake writes (cmake/recipe_texts.cmake).
std::span<const RecipeText> recipe_texts();

}  // namespace ingot::quantize
