#include "quantize/verdicts.h"

#include <algorithm>
#include <set>
#include <tuple>

#include <gtest/gtest.h>

#include "quantize/plan_fixture.h"

namespace ingot::quantize {
namespace {

// A published config with few experts, enough to see what becomes of them.
base::json::object published(std::string_view name) {
  base::json::object config = model::golden_config("configs/" + std::string(name) + ".json");
  config["n_routed_experts"] = 8;
  config["num_experts_per_tok"] = 2;
  config["n_group"] = 1;
  config["topk_group"] = 1;
  config.erase("quantization_config");
  return config;
}

// sglang cannot be told by the file of a GLM-4.7-Flash that shared experts have another format than
// routed ones; a flag says it, which the one error names.
bool needs_a_flag(const Verdict& verdict, std::string_view recipe, std::string_view model) {
  if (verdict.program != "sglang" || recipe != "experts-only" || model != "glm-4.7-flash") {
    return false;
  }
  const auto is_error = [](const model::Finding& finding) {
    return finding.severity == model::Severity::kError;
  };
  EXPECT_EQ(std::ranges::count_if(verdict.findings, is_error), 1);
  EXPECT_TRUE(verdict.findings[0].remedy.contains("--disable-shared-experts-fusion"));
  return true;
}

TEST(Verdicts, EveryBuiltInRecipeMakesFilesThatItsProgramsLoad) {
  const std::pair<const char*, const char*> cases[] = {
      {"amd-glm-5", "glm-5.1"},           {"amd-glm-5.2", "glm-5.2"},
      {"amd-glm-5.2", "glm-5.1"},         {"amd-glm-5.2-attn-fp8", "glm-5.2"},
      {"deepseek-v3.2", "deepseek-v3"},   {"deepseek-v3.2", "deepseek-v3.2"},
      {"glm-4.7-flash", "glm-4.7-flash"}, {"experts-only", "glm-5.2"},
      {"experts-only", "deepseek-v3"},    {"experts-only", "deepseek-v3.2"},
      {"experts-only", "glm-4.7-flash"},  {"experts-mxfp4-rest-fp8", "glm-4.7-flash"}};
  std::set<std::string_view> seen;
  for (const auto& [recipe, name] : cases) {
    seen.insert(recipe);
    const base::json::object config = published(name);
    PlannedModel model(config);
    QuantizationPlan plan = model.plan(recipe);
    ASSERT_TRUE(add_names_of_loaders(config, plan).has_value());
    const auto verdicts = judge_plan(config, plan);
    ASSERT_TRUE(verdicts.has_value()) << verdicts.error().message;
    ASSERT_EQ(verdicts->size(), kPrograms.size());
    for (const Verdict& verdict : *verdicts) {
      if (!verdict.is_meant || needs_a_flag(verdict, recipe, name)) continue;
      EXPECT_TRUE(verdict.loads) << recipe << " of " << name << ", " << verdict.program;
      for (const model::Finding& finding : verdict.findings) {
        EXPECT_NE(finding.severity, model::Severity::kError)
            << recipe << " of " << name << ", " << verdict.program << ": " << finding.line();
      }
    }
  }
  EXPECT_EQ(seen.size(), recipe_names().size());
}

// AMD publishes GLM-5.2; its list of names is Quark's.
TEST(Verdicts, NamesOfLoadersAreAddedWhereTheyAreNeeded) {
  for (const auto& [recipe, name, added] :
       {std::tuple{"amd-glm-5.2", "glm-5.2", ""},
        {"deepseek-v3.2", "deepseek-v3", "model.eh_proj"},
        {"glm-4.7-flash", "glm-4.7-flash", "model.decoder.self_attn.o_proj"}}) {
    const base::json::object config = published(name);
    PlannedModel model(config);
    QuantizationPlan plan = model.plan(recipe);
    const std::vector<std::string> before = plan.exclude;
    ASSERT_TRUE(add_names_of_loaders(config, plan).has_value());
    EXPECT_TRUE(std::ranges::is_sorted(plan.exclude));
    EXPECT_TRUE(std::ranges::includes(plan.exclude, before));
    if (added == std::string_view()) {
      EXPECT_EQ(plan.exclude, before);
    } else {
      EXPECT_TRUE(std::ranges::binary_search(plan.exclude, added)) << name;
    }
  }
}

TEST(Verdicts, SayOnWhichPlatform) {
  const std::vector<Verdict> verdicts = {{.program = "sglang",
                                          .version = "sglang 0.5.23",
                                          .is_meant = true,
                                          .loads = true,
                                          .where = " on CUDA but not on ROCm"}};
  EXPECT_EQ(describe(verdicts, ""),
            "  sglang 0.5.23 loads every tensor in the format that the file has on CUDA but not on "
            "ROCm\n");
}

// lm_head in FP8 is the one thing that the others do not take.
TEST(Verdicts, Fp8HeadsAreForIngotAlone) {
  const base::json::object config = published("glm-5.2");
  PlannedModel model(config);
  const auto verdicts = judge_plan(config, model.plan("amd-glm-5.2-attn-fp8")).value();
  for (const Verdict& verdict : verdicts) {
    EXPECT_EQ(verdict.is_meant, verdict.program == "ingot");
    EXPECT_EQ(verdict.loads, verdict.program == "ingot");
    if (verdict.loads) continue;
    ASSERT_FALSE(verdict.findings.empty());
    EXPECT_EQ(verdict.findings[0].subject, "lm_head") << "errors come first";
    const auto is_error = [](const model::Finding& finding) {
      return finding.severity == model::Severity::kError;
    };
    EXPECT_EQ(std::ranges::count_if(verdict.findings, is_error), 1);
  }
  Recipe for_all = load_recipe("amd-glm-5.2-attn-fp8").value();
  for_all.programs = {"vllm"};
  const auto meant = judge_plan(config, model.plan(for_all).value()).value();
  EXPECT_FALSE(all_meant_load(meant));
  const std::string text = describe(meant, "see a{}b --for {}");
  EXPECT_TRUE(
      text.contains("ingot loads every tensor in the format that the file has; the recipe "
                    "is not meant for it"))
      << text;
  EXPECT_TRUE(text.contains("vLLM 0.33.0 would not load it right\n    ERROR: lm_head")) << text;
}

}  // namespace
}  // namespace ingot::quantize
