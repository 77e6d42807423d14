// The official GLM-5.2-FP8 checkpoint: its 118,629 tensors in 141 shards, as headers over holes.

#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"
#include "model/inspection.h"
#include "model/load_plan.h"

namespace ingot::model {
namespace {

constexpr int64_t kHidden = 6144;

// Written from the published table of shapes and not from list_parameters, which it checks.
class Glm52Fp8 {
 public:
  std::vector<TensorSpec> build() {
    add("model.embed_tokens.weight", DType::kBF16, {154880, kHidden});
    add("model.norm.weight", DType::kBF16, {kHidden});
    add("lm_head.weight", DType::kBF16, {154880, kHidden});
    for (int layer = 0; layer <= 78; ++layer) {
      prefix_ = fmt::format("model.layers.{}.", layer);
      add_attention();
      const bool full = layer < 3 || layer == 78 || (layer - 2) % 4 == 0;
      if (full) add_indexer();
      if (layer < 3) {
        add_mlp("mlp.", 12288);
      } else {
        add("mlp.gate.weight", DType::kBF16, {256, kHidden});
        add("mlp.gate.e_score_correction_bias", DType::kF32, {256});
        for (int e = 0; e < 256; ++e) add_mlp(fmt::format("mlp.experts.{}.", e), 2048);
        add_mlp("mlp.shared_experts.", 2048);
      }
    }
    for (const char* norm : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"}) {
      add(norm, DType::kBF16, {kHidden});
    }
    add("eh_proj.weight", DType::kBF16, {kHidden, 2 * kHidden});
    return std::move(tensors_);
  }

 private:
  void add(std::string_view name, DType dtype, tensor::Shape shape) {
    tensors_.push_back({.name = prefix_ + std::string(name), .dtype = dtype, .shape = shape});
  }

  void add_fp8(const std::string& module, int64_t out, int64_t in) {
    add(module + ".weight", DType::kF8E4M3, {out, in});
    add(module + ".weight_scale_inv", DType::kF32, {(out + 127) / 128, (in + 127) / 128});
  }

  void add_attention() {
    add("input_layernorm.weight", DType::kBF16, {kHidden});
    add("post_attention_layernorm.weight", DType::kBF16, {kHidden});
    add("self_attn.q_a_layernorm.weight", DType::kBF16, {2048});
    add("self_attn.kv_a_layernorm.weight", DType::kBF16, {512});
    add_fp8("self_attn.q_a_proj", 2048, kHidden);
    add_fp8("self_attn.q_b_proj", 16384, 2048);
    add_fp8("self_attn.kv_a_proj_with_mqa", 576, kHidden);
    add_fp8("self_attn.kv_b_proj", 28672, 512);
    add_fp8("self_attn.o_proj", kHidden, 16384);
  }

  void add_indexer() {
    add_fp8("self_attn.indexer.wq_b", 4096, 2048);
    add_fp8("self_attn.indexer.wk", 128, kHidden);
    add("self_attn.indexer.k_norm.weight", DType::kBF16, {128});
    add("self_attn.indexer.k_norm.bias", DType::kBF16, {128});
    add("self_attn.indexer.weights_proj.weight", DType::kBF16, {32, kHidden});
  }

  void add_mlp(const std::string& module, int64_t intermediate) {
    add_fp8(module + "gate_proj", intermediate, kHidden);
    add_fp8(module + "up_proj", intermediate, kHidden);
    add_fp8(module + "down_proj", kHidden, intermediate);
  }

  std::string prefix_;
  std::vector<TensorSpec> tensors_;
};

class Glm52Plan : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    scratch_ = new base::ScratchDirectory;
    write_sparse_checkpoint(scratch_->path(), Glm52Fp8().build(), 141);
  }
  static void TearDownTestSuite() { delete scratch_; }

  static tensor::Checkpoint open() {
    auto checkpoint = tensor::Checkpoint::open(scratch_->path());
    CHECK(checkpoint.has_value(), checkpoint ? "" : checkpoint.error().message);
    return *std::move(checkpoint);
  }

  static base::ScratchDirectory* scratch_;
};

base::ScratchDirectory* Glm52Plan::scratch_ = nullptr;

int64_t count_of(const Inspection& inspection, ModuleClass module_class, const char* format) {
  const auto& formats = inspection.of(module_class).formats;
  const auto found = formats.find(format);
  return found == formats.end() ? 0 : found->second.parameters;
}

TEST_F(Glm52Plan, ComesFromHeadersAlone) {
  const base::SystemClock clock;
  const ModelConfig config = parsed(golden_config("configs/glm-5.2-fp8.json"));
  const base::Instant start = clock.now();
  const tensor::Checkpoint checkpoint = open();
  const base::Instant opened = clock.now();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  const base::Instant planned = clock.now();
  fmt::print("118,629 headers read in {:.3f} s, planned in {:.3f} s\n",
             base::seconds(opened - start), base::seconds(planned - opened));

  EXPECT_EQ(checkpoint.tensors().size(), 118629U);
  EXPECT_EQ(checkpoint.files().size(), 141U);
  ASSERT_TRUE(plan.check().has_value()) << plan.check().error().message;
  EXPECT_TRUE(plan.has_mtp);
  EXPECT_EQ(plan.rows.size(), 59585U);

  const Inspection inspection = inspect_plan(config, plan);
  EXPECT_EQ(inspection.tensors, 118629);
  EXPECT_EQ(inspection.parameters, 753329940480);
  EXPECT_EQ(inspection.bytes, checkpoint.size_bytes());
  EXPECT_NEAR(static_cast<double>(inspection.bytes), 755.6e9, 0.05e9);
  EXPECT_EQ(count_of(inspection, ModuleClass::kRoutedExperts, "fp8_block"), 75 * 256 * 3);
  EXPECT_EQ(count_of(inspection, ModuleClass::kSharedExperts, "fp8_block"), 75 * 3);
  EXPECT_EQ(count_of(inspection, ModuleClass::kAttention, "fp8_block"), 78 * 5);
  EXPECT_EQ(count_of(inspection, ModuleClass::kIndexer, "fp8_block"), 21 * 2);
  EXPECT_EQ(count_of(inspection, ModuleClass::kIndexer, "bf16"), 21 * 3);
  EXPECT_EQ(count_of(inspection, ModuleClass::kRouter, "bf16"), 75);
  EXPECT_EQ(count_of(inspection, ModuleClass::kRouter, "f32"), 75);
  EXPECT_EQ(count_of(inspection, ModuleClass::kEmbedding, "bf16"), 1);
  EXPECT_EQ(count_of(inspection, ModuleClass::kMtp, "fp8_block"), 257 * 3 + 5 + 2);
}

// modules_to_not_convert names 22 modules "indexers_proj"; what the file has is
// "indexer.weights_proj". Its entries of two biases are tensors and not modules, and alive.
TEST_F(Glm52Plan, WarnsOfTheDeadExcludeEntries) {
  const ModelConfig config = parsed(golden_config("configs/glm-5.2-fp8.json"));
  const tensor::Checkpoint checkpoint = open();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  std::set<std::string> dead;
  std::set<std::string> unlisted;
  for (const Finding& finding : plan.findings) {
    EXPECT_EQ(finding.severity, Severity::kWarning) << finding.line();
    if (finding.code == "unlisted_unquantized") {
      unlisted.insert(finding.subject);
      continue;
    }
    EXPECT_EQ(finding.code, "dead_exclude_entry") << finding.line();
    const std::string layer = finding.subject.substr(0, finding.subject.rfind('.'));
    EXPECT_TRUE(finding.subject.ends_with("self_attn.indexers_proj")) << finding.line();
    EXPECT_TRUE(finding.remedy.contains("perhaps " + layer + ".indexer.weights_proj is meant"))
        << finding.line();
    dead.insert(layer + ".indexer.weights_proj");
  }
  EXPECT_EQ(dead.size(), 22U);
  EXPECT_EQ(unlisted, dead) << "the modules that the dead entries mean are bf16 and not listed";
  EXPECT_EQ(plan.findings.size(), 44U);
}

TEST_F(Glm52Plan, ListsTheLayersWhoseIndexersContradictTheConfig) {
  auto object = golden_config("configs/glm-5.2-fp8.json");
  object.erase("indexer_types");
  object.erase("index_topk_freq");
  const ModelConfig everywhere = parsed(object);
  const tensor::Checkpoint checkpoint = open();
  const LoadPlan plan = plan_load(everywhere, checkpoint, {}).value();
  // The classic failure of engines without sharing: 57 layers of 5 tensors.
  EXPECT_EQ(plan.count(Severity::kError), 285U);
  EXPECT_TRUE(plan.check().error().message.contains("(284 further errors"))
      << plan.check().error().message;
  EXPECT_TRUE(
      plan.check().error().message.contains("model.layers.3.self_attn.indexer.wq_b.weight"));
}

TEST_F(Glm52Plan, NamesMissingShards) {
  const base::ScratchDirectory partial;
  std::filesystem::copy(scratch_->path() / "model.safetensors.index.json", partial.path());
  for (const char* shard :
       {"model-00001-of-00141.safetensors", "model-00141-of-00141.safetensors"}) {
    std::filesystem::create_symlink(scratch_->path() / shard, partial / shard);
  }
  const auto checkpoint = tensor::Checkpoint::open(partial.path());
  ASSERT_FALSE(checkpoint.has_value());
  EXPECT_TRUE(checkpoint.error().message.contains("139 of 141 shards are missing"));
  EXPECT_TRUE(checkpoint.error().message.contains("model-00002-of-00141.safetensors"));
}

}  // namespace
}  // namespace ingot::model
