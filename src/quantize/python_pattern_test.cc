#include "quantize/python_pattern.h"

#include <string>

#include <gtest/gtest.h>

namespace ingot::quantize {
namespace {

using Outcome = PythonExpression::Outcome;

bool matches(std::string_view expression, std::string_view name) {
  MatchBudget budget;
  const auto compiled = PythonExpression::compile(expression);
  EXPECT_TRUE(compiled.has_value()) << compiled.error().message;
  return compiled && compiled->match(name, budget) == Outcome::kMatch;
}

TEST(PythonExpression, IsAnchoredAtTheStartAndFreeAtTheEnd) {
  EXPECT_TRUE(matches("model.layers", "model.layers.0.mlp.gate"));
  EXPECT_FALSE(matches("layers", "model.layers.0.mlp.gate"));
  EXPECT_FALSE(matches(".*mlp.gate$", "model.layers.0.mlp.gate_proj"));
  EXPECT_TRUE(matches(".*mlp.gate$", "model.layers.0.mlp.gate"));
  EXPECT_TRUE(matches("b|model", "model.layers"));
  EXPECT_TRUE(matches("", "model"));
}

TEST(PythonExpression, ReadsWhatListsUse) {
  EXPECT_TRUE(matches(R"(model\.layers\.7[89]\..*)", "model.layers.78.eh_proj"));
  EXPECT_FALSE(matches(R"(model\.layers\.7[89]\..*)", "model.layers.7.eh_proj"));
  EXPECT_TRUE(matches(R"((?:lm_head|.*\d{2}.*))", "model.layers.61.eh_proj"));
  EXPECT_TRUE(matches(R"(.*\.(?!mlp)[^.]+\.o_proj)", "model.layers.0.self_attn.o_proj"));
  EXPECT_TRUE(matches(R"((?s:.*self_attn.*)\Z)", "model.layers.0.self_attn.o_proj"));
  EXPECT_FALSE(matches(R"((?s:lm_head)\Z)", "lm_head.extra"));
}

TEST(PythonExpression, RefusesWhatPythonRefusesOrReadsOtherwise) {
  for (const char* expression :
       {"(",         "[",        "a**",         "a{2}{3}", "*a",       R"(\)",    R"(\Qa\E)",
        R"(\h)",     R"(\1(a))", R"(a\Zb)",     "(?<=a)b", "(?P<n>a)", "(?<n>a)", "(?R)",
        "(*ACCEPT)", "a(?i)",    "[[:alpha:]]", "a{,3}",   "a{b",      "[a-\\d]", "a{10000}"}) {
    EXPECT_FALSE(PythonExpression::compile(expression).has_value()) << expression;
  }
}

TEST(PythonExpression, GivesUpOnWhatRunsAway) {
  MatchBudget budget;
  const auto expression = PythonExpression::compile("(a+)+$").value();
  const uint64_t before = budget.steps_left;
  EXPECT_EQ(expression.match(std::string(60, 'a') + "b", budget), Outcome::kTooCostly);
  EXPECT_LT(budget.steps_left, before);
  EXPECT_GT(budget.steps_left, before / 2);
  budget.steps_left = 2;
  EXPECT_EQ(expression.match("aaaa", budget), Outcome::kTooCostly);
}

TEST(Glob, IsThatOfFnmatch) {
  MatchBudget budget;
  const auto glob = [&](std::string_view pattern, std::string_view name) {
    return glob_matches(pattern, name, budget);
  };
  EXPECT_TRUE(glob("*self_attn*", "model.layers.0.self_attn.o_proj"));
  EXPECT_TRUE(glob("*mlp.gate_proj", "model.layers.0.mlp.gate_proj"));
  EXPECT_FALSE(glob("*mlp.gate_proj", "model.layers.0.mlp.experts.7.gate_proj"));
  EXPECT_FALSE(glob("layers", "model.layers"));
  EXPECT_TRUE(glob("a?c", "abc"));
  EXPECT_TRUE(glob("a[b-d]e", "ace"));
  EXPECT_FALSE(glob("a[!b-d]e", "ace"));
  EXPECT_TRUE(glob("a[!b-d]e", "axe"));
  EXPECT_TRUE(glob("a[]]", "a]"));
  EXPECT_TRUE(glob("a[b", "a[b"));
  EXPECT_TRUE(glob("a\\b", "a\\b"));
  EXPECT_TRUE(glob("*", ""));
  EXPECT_FALSE(glob("", "a"));
  budget.steps_left = 3;
  EXPECT_FALSE(glob("aaaaaa", "aaaaaa"));
}

}  // namespace
}  // namespace ingot::quantize
