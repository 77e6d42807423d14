#include "quantize/recipe.h"

#include <algorithm>
#include <array>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <toml++/toml.h>

#include "base/check.h"
#include "base/mapped_file.h"
#include "quantize/line_of_text.h"
#include "quantize/recipe_texts.h"

namespace ingot::quantize {
namespace {

constexpr uint64_t kRecipeBytesMax = 1 << 20;
constexpr std::string_view kMtp = "{mtp}";

constexpr std::array kTreatments = {Treatment::kKeep, Treatment::kMxfp4, Treatment::kFp8Channel};

// "keep, mxfp4, fp8-channel"
std::string treatment_names() {
  std::string list;
  for (const Treatment treatment : kTreatments) {
    if (!list.empty()) list += ", ";
    list += name(treatment);
  }
  return list;
}

// What is wrong with a pattern, or nothing. Fewer characters than fnmatch(3) knows, so that a
// pattern means here what it means to Quark, where a backslash is a character like any other.
std::string pattern_problem(std::string_view pattern) {
  constexpr std::string_view kAllowed = "_.-*?[]!";
  for (size_t at = 0; at < pattern.size(); ++at) {
    if (pattern.substr(at).starts_with(kMtp)) {
      at += kMtp.size() - 1;
      continue;
    }
    const char c = pattern[at];
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || kAllowed.contains(c)) continue;
    if (c == '{') return "braces hold only {mtp}, the index of the MTP layer";
    return "module names consist of letters, digits, \"_\", \"-\" and \".\", and a pattern "
           "furthermore of \"*\", \"?\", \"[...]\" and {mtp}";
  }
  return "";
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }

// Text that quotes the file, as part of an error that is one line.
std::string in_one_line(std::string_view text) {
  std::string line(text);
  std::ranges::replace_if(line, is_control, '?');
  return line;
}

// Reads the table of one recipe file.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  base::Result<Recipe> read(const toml::table& table) const {
    TRY(refuse_unknown_keys(table, {"name", "description", "loaders", "rules"}));
    Recipe recipe;
    recipe.name = TRY(text(table, "name"));
    recipe.description = TRY(text(table, "description"));
    if (const toml::node* loaders = table.get("loaders")) {
      recipe.programs = TRY(read_programs(*loaders));
    }
    const toml::node* rules = table.get("rules");
    if (rules == nullptr || !rules->is_array() || rules->as_array()->empty()) {
      return base::error("{}: no rules; write [[rules]] tables with \"pattern\" and \"treatment\"",
                         rules == nullptr ? at(table) : at(*rules));
    }
    if (rules->as_array()->size() > kRulesMax) {
      return base::error("{}: {} rules; a recipe has at most {}", at(*rules),
                         rules->as_array()->size(), kRulesMax);
    }
    for (const toml::node& rule : *rules->as_array()) {
      if (!rule.is_table()) {
        return base::error("{}: a rule is a table; write [[rules]] above each", at(rule));
      }
      recipe.rules.push_back(TRY(read_rule(*rule.as_table(), recipe.rules)));
    }
    return recipe;
  }

  std::string at(const toml::source_position& position) const {
    return fmt::format("{}:{}:{}", source_, position.line, position.column);
  }

 private:
  std::string at(const toml::node& node) const { return at(node.source().begin); }

  base::Status refuse_unknown_keys(const toml::table& table,
                                   std::initializer_list<std::string_view> known) const {
    for (const auto& [key, node] : table) {
      if (std::ranges::find(known, key.str()) != known.end()) continue;
      return base::error("{}: unknown key \"{}\"; the keys here are {}", at(key.source().begin),
                         in_one_line(key.str()), fmt::join(known, ", "));
    }
    return {};
  }

  // A string of one line that must be there.
  base::Result<std::string> text(const toml::table& table, std::string_view key) const {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      return base::error("{}: \"{}\" is missing; add it", at(table), key);
    }
    const auto value = node->value<std::string>();
    if (!value || !node->is_string() || !is_line_of_text(*value)) {
      return base::error("{}: \"{}\" is not a line of text; write {} = \"...\"", at(*node), key,
                         key);
    }
    return *value;
  }

  base::Result<std::vector<std::string>> read_programs(const toml::node& node) const {
    const toml::array* array = node.as_array();
    std::vector<std::string> programs;
    for (size_t i = 0; array != nullptr && i < array->size(); ++i) {
      const auto value = (*array)[i].value<std::string>();
      if (!value || !(*array)[i].is_string() ||
          std::ranges::find(kPrograms, *value) == kPrograms.end() ||
          std::ranges::find(programs, *value) != programs.end()) {
        return base::error("{}: \"loaders\" lists some of {}, each once", at((*array)[i]),
                           fmt::join(kPrograms, ", "));
      }
      programs.push_back(*value);
    }
    if (!programs.empty()) return programs;
    return base::error("{}: \"loaders\" lists some of {}; leave it out for all of them", at(node),
                       fmt::join(kPrograms, ", "));
  }

  base::Result<RecipeRule> read_rule(const toml::table& table,
                                     const std::vector<RecipeRule>& before) const {
    TRY(refuse_unknown_keys(table, {"pattern", "treatment", "optional"}));
    RecipeRule rule;
    rule.pattern = TRY(text(table, "pattern"));
    const std::string problem = pattern_problem(rule.pattern);
    if (!problem.empty()) {
      return base::error("{}: pattern \"{}\" can match no module: {}", at(*table.get("pattern")),
                         rule.pattern, problem);
    }
    if (std::ranges::find(before, rule.pattern, &RecipeRule::pattern) != before.end()) {
      return base::error("{}: pattern \"{}\" appears twice and the first decides; remove one",
                         at(*table.get("pattern")), rule.pattern);
    }
    const std::string treatment = TRY(text(table, "treatment"));
    const auto known = find_treatment(treatment);
    if (!known) {
      return base::error("{}: unknown treatment \"{}\"; use one of {}", at(*table.get("treatment")),
                         treatment, treatment_names());
    }
    rule.treatment = *known;
    if (const toml::node* optional = table.get("optional")) {
      if (!optional->is_boolean()) {
        return base::error("{}: \"optional\" is true or false", at(*optional));
      }
      rule.optional = optional->as_boolean()->get();
    }
    return rule;
  }

  std::string_view source_;
};

}  // namespace

std::string_view name(Treatment treatment) {
  constexpr std::string_view kNames[] = {"keep", "mxfp4", "fp8-channel"};
  return kNames[static_cast<size_t>(treatment)];
}

std::optional<Treatment> find_treatment(std::string_view text) {
  for (const Treatment treatment : kTreatments) {
    if (name(treatment) == text) return treatment;
  }
  return std::nullopt;
}

base::Result<Recipe> parse_recipe(std::string_view text, std::string_view source) {
  if (text.size() > kRecipeBytesMax) {
    return base::error("{}: {} bytes; a recipe has at most {}", source, text.size(),
                       kRecipeBytesMax);
  }
  const Reader reader(source);
  try {
    return reader.read(toml::parse(text, source));
  } catch (const toml::parse_error& problem) {
    return base::error("{}: not TOML: {}; docs/formats/recipe.md has examples",
                       reader.at(problem.source().begin), in_one_line(problem.description()));
  } catch (const std::exception& problem) {
    return base::error("{}: cannot be read as TOML: {}", source, in_one_line(problem.what()));
  }
}

std::span<const std::string_view> recipe_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> collected;
    for (const RecipeText& recipe : recipe_texts()) collected.push_back(recipe.name);
    return collected;
  }();
  return names;
}

std::optional<std::string_view> recipe_text(std::string_view name) {
  for (const RecipeText& recipe : recipe_texts()) {
    if (recipe.name == name) return recipe.text;
  }
  return std::nullopt;
}

std::string_view default_recipe(model::Family family) {
  switch (family) {
    case model::Family::kGlmMoeDsa:
      return "amd-glm-5.2";
    case model::Family::kGlm4MoeLite:
      return "glm-4.7-flash";
    case model::Family::kDeepseekV3:
    case model::Family::kDeepseekV32:
      return "deepseek-v3.2";
  }
  CHECK(false, "family without a recipe");
  return "";
}

base::Result<Recipe> load_recipe(const std::string& name_or_file) {
  if (const auto text = recipe_text(name_or_file)) return parse_recipe(*text, name_or_file);
  std::error_code code;
  if (!std::filesystem::exists(name_or_file, code)) {
    return base::error("{}: neither a recipe nor a file; the recipes are {}", name_or_file,
                       fmt::join(recipe_names(), ", "));
  }
  const std::string text = TRY(base::read_text_file(name_or_file, kRecipeBytesMax));
  Recipe recipe = TRY(parse_recipe(text, name_or_file));
  if (recipe_text(recipe.name)) {
    return base::error("{}: \"{}\" is the name of a built-in recipe; give this one its own",
                       name_or_file, recipe.name);
  }
  return recipe;
}

}  // namespace ingot::quantize
