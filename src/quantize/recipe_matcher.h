#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "quantize/recipe.h"

namespace ingot::quantize {

// The rules of one recipe at work on the modules of one model. Keeps a reference to the recipe.
class RecipeMatcher {
 public:
  // `mtp_layer` is what {mtp} stands for.
  RecipeMatcher(const Recipe& recipe, int64_t mtp_layer);

  // The first rule that matches a module ("model.layers.3.mlp.gate"); null when none does.
  const RecipeRule* decide(const std::string& module);

  // After all of a model's modules: an error for the first rule that is not optional and that
  // matched none of them, with the nearest of `modules`, or that others decided before.
  base::Status check_every_rule_decided(std::span<const std::string> modules) const;

 private:
  struct Entry {
    const RecipeRule* rule;
    std::string pattern;  // without {mtp}
    bool matched = false;
    bool decided = false;
  };

  std::string recipe_name_;
  std::vector<Entry> entries_;
};

// How many characters have to be inserted, left out or exchanged before `pattern` matches `name`;
// a `*` stands for any characters, `?` for one.
size_t pattern_distance(std::string_view pattern, std::string_view name);

}  // namespace ingot::quantize
