// Which kernels named models run on, by recipe and level of instruction sets, against golden texts.
// After a change of kernels that is meant, INGOT_WRITE_LEDGERS=1 writes the texts anew; their diff
// then shows what the change does to every model.

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/mapped_file.h"
#include "engine/model_runner.h"
#include "model/synthetic_checkpoint.h"
#include "quantize/plan_fixture.h"

namespace ingot::ledger {
namespace {

using quantize::PlannedModel;

// Attention, MLPs and experts in FP8 with a scale per 128 x 128, as the official files have it.
std::vector<tensor::TensorSpec> in_fp8_blocks(PlannedModel& model) {
  for (const model::Parameter& parameter : model::list_parameters(model.config())) {
    const std::string_view name = parameter.name;
    const bool kept = parameter.role == model::Role::kRouter ||
                      parameter.role == model::Role::kIndexGates || parameter.optional ||
                      !(name.contains(".self_attn.") || name.contains(".mlp."));
    if (parameter.is_linear() && !kept) model.store_as_fp8(std::string(parameter.module()));
  }
  return model.tensors;
}

// What `ingot quantize` writes.
std::vector<tensor::TensorSpec> quantized(PlannedModel& model, const std::string& recipe) {
  std::vector<tensor::TensorSpec> tensors;
  const quantize::QuantizationPlan plan = model.plan(recipe);
  for (const quantize::PlannedShard& shard : plan.shards) {
    for (const quantize::PlannedTensor& tensor : shard.tensors) {
      tensors.insert(tensors.end(), tensor.outputs.begin(), tensor.outputs.end());
    }
  }
  return tensors;
}

std::vector<tensor::TensorSpec> tensors_of(PlannedModel& model, const std::string& recipe) {
  if (recipe == "bf16") return model.tensors;
  return recipe == "fp8" ? in_fp8_blocks(model) : quantized(model, recipe);
}

kernels::Ledger ledger_of(const model::ModelConfig& config,
                          const std::vector<tensor::TensorSpec>& tensors, kernels::Target target) {
  const base::ScratchDirectory scratch;
  model::write_sparse_checkpoint(scratch.path(), tensors);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const model::LoadPlan plan = model::plan_load(config, checkpoint, {}).value();
  return engine::choose_kernels(config, plan, {.target = target, .mtp = model::MtpChoice::kLoad})
      .value()
      .ledger;
}

// A named model with few of its layers: one dense, four with experts, indexers full, shared three
// times, full; and its MTP layer. More of them would only count more uses.
base::json::object few_layers(const char* name) {
  const base::json::object config = model::golden_config(fmt::format("configs/{}.json", name));
  return model::reshape_config(config, {.layers = 5}, name).value().as_object();
}

struct Case {
  const char* config;
  const char* recipe;
};

// The recipes are those of `ingot quantize`: all keep the MTP layer with its experts in bf16, and
// amd-glm-5 and experts-only the shared expert as well.
constexpr Case kCases[] = {
    {"glm-5.2", "bf16"},
    {"glm-5.2", "fp8"},
    {"glm-5.2", "amd-glm-5.2"},
    {"glm-5.2", "amd-glm-5"},
    {"glm-4.7-flash", "bf16"},
    {"glm-4.7-flash", "fp8"},
    {"glm-4.7-flash", "glm-4.7-flash"},
    {"deepseek-v3.2", "bf16"},
    {"deepseek-v3.2", "fp8"},
    {"deepseek-v3.2", "deepseek-v3.2"},
};

class GoldenLedgers : public testing::TestWithParam<kernels::Target> {};

TEST_P(GoldenLedgers, EveryUseHasTheKernelThatIsExpected) {
  const kernels::Target target = GetParam();
  std::string text;
  for (const Case& entry : kCases) {
    PlannedModel model(few_layers(entry.config));
    const auto ledger = ledger_of(model.config(), tensors_of(model, entry.recipe), target);
    // With an MTP layer and, in amd-glm-5, shared experts in bf16 among the MXFP4, each has a fast
    // kernel of its own.
    for (const kernels::LedgerEntry& use : ledger.entries()) {
      EXPECT_TRUE(target == kernels::Target::kReference || use.target > kernels::Target::kReference)
          << entry.config << ", " << entry.recipe << ": " << use.operation << " " << use.formats;
    }
    text += fmt::format("{}, {}\n{}\n", entry.config, entry.recipe, describe(ledger));
  }
  const auto path = std::filesystem::path(INGOT_SOURCE_DIR) / "tests/golden/ledgers" /
                    fmt::format("{}.txt", name(target));
  if (std::getenv("INGOT_WRITE_LEDGERS") != nullptr) std::ofstream(path) << text;
  const auto golden = base::read_text_file(path, 1 << 20);
  ASSERT_TRUE(golden.has_value()) << golden.error().message;
  EXPECT_EQ(text, *golden) << "if this is meant, run it with INGOT_WRITE_LEDGERS=1";
}

INSTANTIATE_TEST_SUITE_P(Targets, GoldenLedgers,
                         testing::ValuesIn(kernels::built_targets().begin(),
                                           kernels::built_targets().end()),
                         [](const auto& of) { return std::string(name(of.param)); });

}  // namespace
}  // namespace ingot::ledger
