#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "model/config_fixture.h"
#include "model/quantized_fixture.h"
#include "model/weights.h"

namespace ingot::model {
namespace {

using kernels::WeightFormat;

constexpr StoredForm kQuantizedForms[] = {
    StoredForm::kFp8BlockScaleInv, StoredForm::kFp8BlockScale, StoredForm::kFp8ChannelColumn,
    StoredForm::kFp8ChannelVector, StoredForm::kMxfp4Quark,    StoredForm::kMxfp4CompressedTensors};

// A config with more than one block of everything, and the last of them partial.
ModelConfig test_config() {
  auto config = small_config();
  config["hidden_size"] = 140;
  config["kv_lora_rank"] = 132;
  config["num_attention_heads"] = 5;  // 5 * (12 + 16) rows of kv_b_proj
  config["num_hidden_layers"] = 2;
  config["indexer_types"] = base::json::array{"full", "shared"};
  config["n_routed_experts"] = 2;
  return parsed(config);
}

// Every linear layer in one form, all else in bf16.
std::vector<StoredParameter> stored_as(const ModelConfig& config, StoredForm form) {
  std::vector<StoredParameter> list;
  for (const Parameter& parameter : list_parameters(config)) {
    if (parameter.optional) continue;
    const base::RandomStream stream = base::random_stream(11, parameter.name);
    std::vector<float> values;
    for (int64_t i = 0; i < parameter.shape.num_elements(); ++i) {
      values.push_back(static_cast<float>(stream.normal(static_cast<uint64_t>(i))));
    }
    list.push_back(store(parameter, values, parameter.is_linear() ? form : StoredForm::kBF16));
  }
  return list;
}

StoredParameter& named(std::vector<StoredParameter>& list, std::string_view module) {
  const auto found = std::ranges::find_if(list, [&](const StoredParameter& parameter) {
    return parameter.specs.front().name.starts_with(module);
  });
  CHECK(found != list.end(), module);
  return *found;
}

base::Result<Weights> load(const std::filesystem::path& directory, const ModelConfig& config,
                           int team_size = 2) {
  const base::SystemClock clock;
  base::ThreadTeam team(team_size);
  const auto checkpoint = TRY(tensor::Checkpoint::open(directory));
  const LoadPlan plan = TRY(plan_load(config, checkpoint, {}));
  return Weights::load(config, plan, MtpChoice::kLoad, {}, checkpoint, team, clock);
}

void expect_bytes(const void* got, const std::vector<std::byte>& want, const std::string& name) {
  ASSERT_NE(got, nullptr) << name;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(got) % 64, 0U) << name;
  EXPECT_EQ(std::memcmp(got, want.data(), want.size()), 0) << name;
}

class QuantizedWeights : public testing::TestWithParam<StoredForm> {};

TEST_P(QuantizedWeights, AreHeldAsStored) {
  const ModelConfig config = test_config();
  const base::ScratchDirectory scratch;
  auto stored = stored_as(config, GetParam());
  write_stored(scratch.path(), stored);
  const auto weights = load(scratch.path(), config);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  const LayerWeights& layer = weights->layers()[1];
  const std::pair<std::string, Weight> held[] = {
      {"model.layers.1.mlp.experts.1.down_proj.", layer.experts[1].down},
      {"model.layers.1.mlp.shared_experts.up_proj.", layer.shared.up},
      {"model.layers.1.mlp.gate.", layer.router},
      {"model.layers.1.self_attn.q_b_proj.", layer.attention.q_b},
      {"model.layers.0.self_attn.indexer.wk.", weights->layers()[0].attention.indexer.k},
      {"model.layers.0.mlp.gate_proj.", weights->layers()[0].dense.gate},
      {"model.layers.2.eh_proj.", weights->mtp()->projection},
      {"model.layers.2.mlp.experts.0.gate_proj.", weights->mtp()->layer.experts[0].gate},
      {"lm_head.", weights->lm_head()}};
  for (const auto& [module, weight] : held) {
    const StoredParameter& want = named(stored, module);
    EXPECT_EQ(weight.format, format_of(GetParam())) << module;
    expect_bytes(weight.data, want.bytes[0], module);
    expect_bytes(weight.scales, want.bytes[1], module);
  }
}

// Heads take 28 rows and two scale blocks meet inside the fifth: the blocks go by absolute rows.
TEST_P(QuantizedWeights, HoldKvBInBF16) {
  const ModelConfig config = test_config();
  const base::ScratchDirectory scratch;
  auto stored = stored_as(config, GetParam());
  write_stored(scratch.path(), stored);
  const auto weights = load(scratch.path(), config);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  const auto& layers = weights->layers();
  const std::pair<std::string, Weight> held[] = {
      {"model.layers.0.self_attn.kv_b_proj.", layers[0].attention.kv_b},
      {"model.layers.1.self_attn.kv_b_proj.", layers[1].attention.kv_b},
      {"model.layers.2.self_attn.kv_b_proj.", weights->mtp()->layer.attention.kv_b}};
  for (const auto& [module, weight] : held) {
    const std::vector<float>& want = named(stored, module).decoded;
    EXPECT_EQ(weight.format, WeightFormat::kBF16);
    EXPECT_EQ(weight.scales, nullptr);
    ASSERT_EQ(static_cast<size_t>(weight.rows * weight.cols), want.size());
    const auto* values = static_cast<const tensor::BFloat16*>(weight.data);
    for (size_t i = 0; i < want.size(); ++i) {
      ASSERT_EQ(values[i].bits, tensor::to_bf16(want[i]).bits) << module << " element " << i;
    }
  }
}

TEST_P(QuantizedWeights, TakeTheirStoredSizeAndNoMore) {
  const ModelConfig config = test_config();
  const base::ScratchDirectory scratch;
  const auto stored = stored_as(config, GetParam());
  write_stored(scratch.path(), stored);
  uint64_t stored_bytes = 0;
  size_t pieces = 0;
  for (const StoredParameter& parameter : stored) {
    for (const auto& bytes : parameter.bytes) {
      stored_bytes += bytes.size();
      ++pieces;
    }
  }
  const auto weights = load(scratch.path(), config).value();
  const uint64_t kv_b_bytes = 3U * (5 * 28 * 132) * 2;
  const uint64_t vector_bytes = 40U * 140 * 4;  // a generous bound: in f32 instead of bf16
  EXPECT_LE(weights.size_bytes(), stored_bytes + kv_b_bytes + vector_bytes + pieces * 64);
}

// A value or a scale that is none names its tensor and element.
TEST_P(QuantizedWeights, NameTheTensorThatIsNotFinite) {
  const ModelConfig config = test_config();
  const bool mxfp4 = format_of(GetParam()) == WeightFormat::kMxfp4;
  const auto expect_refused = [&](const std::string& module, size_t tensor, size_t element,
                                  const std::vector<uint8_t>& bytes) {
    const base::ScratchDirectory scratch;
    auto stored = stored_as(config, GetParam());
    StoredParameter& parameter = named(stored, module);
    std::memcpy(parameter.bytes[tensor].data() + element * bytes.size(), bytes.data(),
                bytes.size());
    write_stored(scratch.path(), stored);
    const auto weights = load(scratch.path(), config);
    ASSERT_FALSE(weights.has_value()) << module;
    EXPECT_TRUE(weights.error().message.starts_with(fmt::format(
        "{}: tensor {} has NaN or infinity at element {};",
        (scratch / "model.safetensors").string(), parameter.specs[tensor].name, element)))
        << weights.error().message;
  };
  for (const std::string module :
       {"model.layers.1.mlp.experts.1.up_proj.", "model.layers.1.self_attn.kv_b_proj.",
        "model.layers.0.mlp.down_proj."}) {
    if (mxfp4) {
      expect_refused(module, 1, 3, {0xFF});
      continue;
    }
    expect_refused(module, 0, 1030, {0x7F});
    expect_refused(module, 0, 0, {0xFF});
    expect_refused(module, 1, 1, {0x00, 0x00, 0x80, 0x7F});  // infinity
    expect_refused(module, 1, 0, {0x01, 0x00, 0xC0, 0xFF});  // NaN
  }
}

TEST_P(QuantizedWeights, ChooseKernelsWithoutData) {
  const ModelConfig config = test_config();
  const base::ScratchDirectory scratch;
  write_stored(scratch.path(), stored_as(config, GetParam()));
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  const auto weights = Weights::shapes_of(config, plan, MtpChoice::kLoad, {}).value();
  EXPECT_EQ(weights.lm_head().format, format_of(GetParam()));
  EXPECT_EQ(weights.lm_head().data, nullptr);
  EXPECT_EQ(weights.lm_head().scales, nullptr);
  EXPECT_EQ(weights.layers()[0].attention.kv_b.format, WeightFormat::kBF16);
}

std::string form_name(const testing::TestParamInfo<StoredForm>& info) {
  constexpr const char* kNames[] = {"F32",
                                    "F16",
                                    "BF16",
                                    "Fp8BlockScaleInv",
                                    "Fp8BlockScale",
                                    "Fp8ChannelColumn",
                                    "Fp8ChannelVector",
                                    "Mxfp4Quark",
                                    "Mxfp4CompressedTensors"};
  return kNames[static_cast<size_t>(info.param)];
}
INSTANTIATE_TEST_SUITE_P(Forms, QuantizedWeights, testing::ValuesIn(kQuantizedForms), form_name);

TEST(QuantizedWeights, RefuseAKvBThatOverflowsBF16) {
  const ModelConfig config = test_config();
  const base::ScratchDirectory scratch;
  auto stored = stored_as(config, StoredForm::kFp8ChannelVector);
  const float huge = 3e38f;
  StoredParameter& kv_b = named(stored, "model.layers.0.self_attn.kv_b_proj.");
  std::memcpy(kv_b.bytes[1].data() + 2 * sizeof huge, &huge, sizeof huge);
  write_stored(scratch.path(), stored);
  const auto weights = load(scratch.path(), config);
  ASSERT_FALSE(weights.has_value());
  EXPECT_TRUE(weights.error().message.contains(
      "tensor model.layers.0.self_attn.kv_b_proj.weight has NaN or infinity at element 264"))
      << weights.error().message;
}

TEST(QuantizedWeights, FirstNonFiniteOfEveryFormat) {
  const uint8_t codes[] = {0x00, 0x7E, 0xFE, 0x80, 0xFF, 0x7F};
  for (const WeightFormat format : {WeightFormat::kFp8Block, WeightFormat::kFp8Channel}) {
    EXPECT_EQ(find_non_finite(format, codes, 4), std::nullopt);
    EXPECT_EQ(find_non_finite(format, codes, 6), 4);
    const float scales[] = {1, 0, -std::numeric_limits<float>::max(),
                            std::numeric_limits<float>::infinity()};
    EXPECT_EQ(find_non_finite_scale(format, scales, 3), std::nullopt);
    EXPECT_EQ(find_non_finite_scale(format, scales, 4), 3);
  }
  EXPECT_EQ(find_non_finite(WeightFormat::kMxfp4, codes, 6), std::nullopt);
  EXPECT_EQ(find_non_finite_scale(WeightFormat::kMxfp4, codes, 4), std::nullopt);
  EXPECT_EQ(find_non_finite_scale(WeightFormat::kMxfp4, codes, 6), 4);
}

}  // namespace
}  // namespace ingot::model
