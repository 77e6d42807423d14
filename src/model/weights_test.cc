#include "model/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "model/checkpoint_fixture.h"
#include "model/config_fixture.h"
#include "tensor/float16.h"

namespace ingot::model {
namespace {

using kernels::WeightFormat;

std::vector<std::byte> encoded(DType dtype, float value) {
  std::vector<std::byte> bytes(tensor::size_bytes(dtype));
  const tensor::Float16 half = tensor::to_f16(value);
  const tensor::BFloat16 brain = tensor::to_bf16(value);
  const void* source = dtype == DType::kF32   ? static_cast<const void*>(&value)
                       : dtype == DType::kF16 ? static_cast<const void*>(&half)
                                              : &brain;
  std::memcpy(bytes.data(), source, bytes.size());
  return bytes;
}

// A different value for every element of every tensor.
float value_of(std::string_view tensor, int64_t index) {
  return static_cast<float>(base::random_stream(7, tensor).normal(static_cast<uint64_t>(index)));
}

// One value that a test puts somewhere else than value_of.
struct Planted {
  std::string tensor;
  int64_t index;
  float value;
};

void write_values(const std::filesystem::path& directory, const std::vector<TensorSpec>& tensors,
                  const std::optional<Planted>& planted = {}) {
  std::string data;
  for (const TensorSpec& tensor : tensors) {
    for (int64_t i = 0; i < tensor.shape.num_elements(); ++i) {
      const bool here = planted && planted->tensor == tensor.name && planted->index == i;
      const auto value = encoded(tensor.dtype, here ? planted->value : value_of(tensor.name, i));
      data.append(reinterpret_cast<const char*>(value.data()), value.size());
    }
  }
  write_file(directory / "model.safetensors", header_text(tensors), data);
}

base::Result<Weights> load(const std::filesystem::path& directory, const ModelConfig& config,
                           MtpChoice mtp, int team_size = 2) {
  const base::SystemClock clock;
  base::ThreadTeam team(team_size);
  const auto checkpoint = TRY(tensor::Checkpoint::open(directory));
  const LoadPlan plan = TRY(plan_load(config, checkpoint, {}));
  return Weights::load(config, plan, mtp, {}, checkpoint, team, clock);
}

std::vector<TensorSpec> stored_as(DType dtype) {
  auto tensors = published_tensors(parsed(small_config()));
  for (TensorSpec& tensor : tensors) tensor.dtype = dtype;
  return tensors;
}

using NamedWeights = std::vector<std::pair<std::string, Weight>>;

void add_mlp(const std::string& module, const MlpWeights& mlp, NamedWeights& list) {
  list.emplace_back(module + "gate_proj.weight", mlp.gate);
  list.emplace_back(module + "up_proj.weight", mlp.up);
  list.emplace_back(module + "down_proj.weight", mlp.down);
}

void add_layer(const std::string& prefix, const LayerWeights& layer, NamedWeights& list) {
  const AttentionWeights& attention = layer.attention;
  const std::string self_attn = prefix + "self_attn.";
  list.emplace_back(prefix + "input_layernorm.weight", layer.input_norm);
  list.emplace_back(prefix + "post_attention_layernorm.weight", layer.post_attention_norm);
  list.emplace_back(self_attn + "q_a_proj.weight", attention.q_a);
  list.emplace_back(self_attn + "q_a_layernorm.weight", attention.q_a_norm);
  list.emplace_back(self_attn + "q_b_proj.weight", attention.q_b);
  list.emplace_back(self_attn + "kv_a_proj_with_mqa.weight", attention.kv_a);
  list.emplace_back(self_attn + "kv_a_layernorm.weight", attention.kv_a_norm);
  list.emplace_back(self_attn + "kv_b_proj.weight", attention.kv_b);
  list.emplace_back(self_attn + "o_proj.weight", attention.o);
  if (attention.indexer.k.present()) {
    list.emplace_back(self_attn + "indexer.wq_b.weight", attention.indexer.q_b);
    list.emplace_back(self_attn + "indexer.wk.weight", attention.indexer.k);
    list.emplace_back(self_attn + "indexer.k_norm.weight", attention.indexer.k_norm);
    list.emplace_back(self_attn + "indexer.k_norm.bias", attention.indexer.k_norm_bias);
    list.emplace_back(self_attn + "indexer.weights_proj.weight", attention.indexer.gates);
  }
  if (layer.dense.gate.present()) return add_mlp(prefix + "mlp.", layer.dense, list);
  list.emplace_back(prefix + "mlp.gate.weight", layer.router);
  list.emplace_back(prefix + "mlp.gate.e_score_correction_bias", layer.router_bias);
  for (size_t e = 0; e < layer.experts.size(); ++e) {
    add_mlp(fmt::format("{}mlp.experts.{}.", prefix, e), layer.experts[e], list);
  }
  add_mlp(prefix + "mlp.shared_experts.", layer.shared, list);
}

// Every weight of the model with the name of its tensor.
NamedWeights named_weights(const Weights& weights) {
  NamedWeights list = {{"model.embed_tokens.weight", weights.embedding()},
                       {"model.norm.weight", weights.final_norm()},
                       {"lm_head.weight", weights.lm_head()}};
  for (size_t i = 0; i < weights.layers().size(); ++i) {
    add_layer(fmt::format("model.layers.{}.", i), weights.layers()[i], list);
  }
  if (const MtpWeights* mtp = weights.mtp()) {
    list.emplace_back("model.layers.3.enorm.weight", mtp->embedding_norm);
    list.emplace_back("model.layers.3.hnorm.weight", mtp->hidden_norm);
    list.emplace_back("model.layers.3.eh_proj.weight", mtp->projection);
    list.emplace_back("model.layers.3.shared_head.norm.weight", mtp->head_norm);
    add_layer("model.layers.3.", mtp->layer, list);
  }
  return list;
}

size_t held_size(const Weight& weight) {
  const size_t width = weight.format == WeightFormat::kF32 ? 4 : 2;
  return static_cast<size_t>(weight.rows * weight.cols) * width;
}

class LoadedWeights : public testing::TestWithParam<DType> {};

// What is held of a stored value: the same bits, or for vectors the f32 of the same value.
std::vector<std::byte> held(DType dtype, bool vector, float value) {
  if (!vector || dtype == DType::kF32) return encoded(dtype, value);
  return encoded(DType::kF32, dtype == DType::kF16 ? tensor::to_f32(tensor::to_f16(value))
                                                   : tensor::to_f32(tensor::to_bf16(value)));
}

TEST_P(LoadedWeights, HoldWhatTheFileHolds) {
  const DType dtype = GetParam();
  const base::ScratchDirectory scratch;
  const auto tensors = stored_as(dtype);
  write_values(scratch.path(), tensors);
  const auto weights = load(scratch.path(), parsed(small_config()), MtpChoice::kLoad);
  ASSERT_TRUE(weights.has_value()) << weights.error().message;
  const auto list = named_weights(*weights);
  EXPECT_EQ(list.size(), tensors.size());
  for (const auto& [name, weight] : list) {
    const auto spec = std::ranges::find(tensors, name, &TensorSpec::name);
    ASSERT_NE(spec, tensors.end()) << name;
    const bool vector = spec->shape.rank() == 1;
    EXPECT_EQ(weight.rows, vector ? 1 : spec->shape[0]) << name;
    EXPECT_EQ(weight.cols, spec->shape[spec->shape.rank() - 1]) << name;
    EXPECT_EQ(weight.format, vector || dtype == DType::kF32 ? WeightFormat::kF32
                             : dtype == DType::kF16         ? WeightFormat::kF16
                                                            : WeightFormat::kBF16);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(weight.data) % base::Arena::kAlignment, 0U) << name;
    const auto* data = static_cast<const std::byte*>(weight.data);
    for (int64_t i = 0; i < weight.rows * weight.cols; ++i) {
      const auto expected = held(dtype, vector, value_of(name, i));
      ASSERT_EQ(std::memcmp(data, expected.data(), expected.size()), 0) << name << " " << i;
      data += expected.size();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, LoadedWeights,
                         testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& test) { return std::string(tensor::name(test.param)); });

TEST(Weights, AreTheSameForEveryTeam) {
  const base::ScratchDirectory scratch;
  write_values(scratch.path(), stored_as(DType::kBF16));
  const auto one = load(scratch.path(), parsed(small_config()), MtpChoice::kLoad, 1).value();
  for (const int size : {2, 3, 7}) {
    const auto other = load(scratch.path(), parsed(small_config()), MtpChoice::kLoad, size).value();
    const auto expected = named_weights(one);
    const auto actual = named_weights(other);
    EXPECT_EQ(other.size_bytes(), one.size_bytes());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_EQ(std::memcmp(actual[i].second.data, expected[i].second.data,
                            held_size(expected[i].second)),
                0)
          << expected[i].first << " with " << size;
    }
  }
}

TEST(Weights, NameTheTensorThatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const Planted cases[] = {
      {"model.embed_tokens.weight", 0, std::nanf("")},
      {"model.embed_tokens.weight", 160 * 72 - 1, infinity},
      {"lm_head.weight", 1024, -infinity},
      {"model.norm.weight", 71, std::nanf("")},
      {"model.layers.1.mlp.experts.3.down_proj.weight", 1023, std::nanf("")},
      {"model.layers.2.mlp.gate.e_score_correction_bias", 2, infinity},
  };
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const Planted& planted : cases) {
      const base::ScratchDirectory scratch;
      write_values(scratch.path(), stored_as(dtype), planted);
      const auto weights = load(scratch.path(), parsed(small_config()), MtpChoice::kLoad);
      ASSERT_FALSE(weights.has_value()) << planted.tensor;
      EXPECT_TRUE(weights.error().message.starts_with(
          fmt::format("{}: tensor {} has NaN or infinity at element {};",
                      (scratch / "model.safetensors").string(), planted.tensor, planted.index)))
          << weights.error().message;
    }
  }
}

TEST(Weights, LeaveTheMtpLayerOut) {
  const base::ScratchDirectory scratch;
  auto tensors = stored_as(DType::kBF16);
  tensors.push_back(
      {.name = "model.layers.3.embed_tokens.weight", .dtype = DType::kBF16, .shape = {160, 72}});
  write_values(scratch.path(), tensors, Planted{"model.layers.3.hnorm.weight", 3, std::nanf("")});
  const ModelConfig config = parsed(small_config());
  const auto without = load(scratch.path(), config, MtpChoice::kLeaveOut);
  ASSERT_TRUE(without.has_value()) << without.error().message;
  EXPECT_EQ(without->mtp(), nullptr);
  for (const auto& [name, weight] : named_weights(*without))
    EXPECT_NE(weight.data, nullptr) << name;
  const auto with = load(scratch.path(), config, MtpChoice::kLoad);
  ASSERT_FALSE(with.has_value());
  EXPECT_TRUE(with.error().message.contains("model.layers.3.hnorm.weight has NaN or infinity"));
}

TEST(Weights, AcceptTheLargestFiniteValues) {
  const base::ScratchDirectory scratch;
  write_values(scratch.path(), stored_as(DType::kF32),
               Planted{"lm_head.weight", 5, std::numeric_limits<float>::max()});
  EXPECT_TRUE(load(scratch.path(), parsed(small_config()), MtpChoice::kLoad).has_value());
}

TEST(Weights, FirstNonFiniteOfEveryFormat) {
  const uint16_t half[] = {0x7BFF, 0xFC00, 0x7C01};
  EXPECT_EQ(find_non_finite(WeightFormat::kF16, half, 1), std::nullopt);
  EXPECT_EQ(find_non_finite(WeightFormat::kF16, half, 3), 1);
  const uint16_t brain[] = {0x7F7F, 0x0000, 0xFFC0};
  EXPECT_EQ(find_non_finite(WeightFormat::kBF16, brain, 2), std::nullopt);
  EXPECT_EQ(find_non_finite(WeightFormat::kBF16, brain, 3), 2);
  std::vector<float> wide(3000, 1.0F);
  EXPECT_EQ(find_non_finite(WeightFormat::kF32, wide.data(), 3000), std::nullopt);
  wide[2999] = std::nanf("");
  EXPECT_EQ(find_non_finite(WeightFormat::kF32, wide.data(), 3000), 2999);
  EXPECT_EQ(find_non_finite(WeightFormat::kF32, wide.data(), 2999), std::nullopt);
  EXPECT_EQ(find_non_finite(WeightFormat::kF32, wide.data(), 0), std::nullopt);
}

TEST(Weights, ReportAFileThatShrankAfterItWasOpened) {
  const base::ScratchDirectory scratch;
  write_values(scratch.path(), stored_as(DType::kBF16));
  const ModelConfig config = parsed(small_config());
  const base::SystemClock clock;
  base::ThreadTeam team(2);
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  const auto path = scratch / "model.safetensors";
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const auto weights =
      Weights::load(config, plan, MtpChoice::kLeaveOut, {}, checkpoint, team, clock);
  ASSERT_FALSE(weights.has_value());
  EXPECT_TRUE(weights.error().message.starts_with(path.string())) << weights.error().message;
}

TEST(Weights, SayHowMuchMemoryIsMissing) {
  const base::ScratchDirectory scratch;
  auto config = small_config();
  config["vocab_size"] = 1 << 24;
  config["hidden_size"] = 1 << 17;  // 4 TiB of embedding, the same of head
  write_sparse_checkpoint(scratch.path(), published_tensors(parsed(config)));
  const auto weights = load(scratch.path(), parsed(config), MtpChoice::kLeaveOut);
  ASSERT_FALSE(weights.has_value());
  EXPECT_TRUE(weights.error().message.starts_with("weights need 81")) << weights.error().message;
  EXPECT_TRUE(weights.error().message.contains("are available; free memory"));
}

TEST(Weights, RefuseAPlanWithErrors) {
  const base::ScratchDirectory scratch;
  auto tensors = stored_as(DType::kBF16);
  remove_tensors(tensors, "model.norm.weight");
  write_sparse_checkpoint(scratch.path(), tensors);
  const auto weights = load(scratch.path(), parsed(small_config()), MtpChoice::kLoad);
  ASSERT_FALSE(weights.has_value());
  EXPECT_TRUE(weights.error().message.starts_with("model.norm.weight: missing"));
}

TEST(Weights, ShapesComeWithoutData) {
  const base::ScratchDirectory scratch;
  write_sparse_checkpoint(scratch.path(), stored_as(DType::kF16));
  const ModelConfig config = parsed(small_config());
  const auto checkpoint = tensor::Checkpoint::open(scratch.path()).value();
  const LoadPlan plan = plan_load(config, checkpoint, {}).value();
  const auto weights = Weights::shapes_of(config, plan, MtpChoice::kLoad, {}).value();
  for (const auto& [name, weight] : named_weights(weights)) {
    EXPECT_EQ(weight.data, nullptr) << name;
    EXPECT_GT(weight.rows * weight.cols, 0) << name;
  }
  EXPECT_EQ(weights.size_bytes(), 0U);
}

}  // namespace
}  // namespace ingot::model
