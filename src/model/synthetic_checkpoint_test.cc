#include "model/synthetic_checkpoint.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/output_file.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "model/config_fixture.h"
#include "model/load_plan.h"
#include "model/named_configs.h"
#include "tensor/checkpoint.h"
#include "tensor/float16.h"

namespace ingot::model {
namespace {

namespace json = base::json;
using tensor::DType;

uint64_t number(const json::value& text, int base) {
  const std::string_view digits = text.as_string();
  uint64_t value = 0;
  const auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  CHECK(result.ec == std::errc(), digits);
  return value;
}

// The file comes from another implementation, in Python.
TEST(SyntheticCheckpoint, ValuesAreThoseOfTheGoldenFile) {
  const json::object golden = golden_config("synthetic_weights.json");
  const json::array& cases = golden.at("values").as_array();
  EXPECT_EQ(cases.size(), 18U);
  for (const json::value& entry : cases) {
    const json::object& object = entry.as_object();
    const json::array& extents = object.at("shape").as_array();
    Parameter parameter{};
    parameter.name = object.at("name").as_string();
    parameter.shape = extents.size() == 1
                          ? tensor::Shape{extents[0].as_int64()}
                          : tensor::Shape{extents[0].as_int64(), extents[1].as_int64()};
    const uint64_t seed = number(object.at("seed"), 10);
    EXPECT_EQ(base::random_stream(seed, parameter.name).key, number(object.at("key"), 16));
    const json::array& indices = object.at("index").as_array();
    for (size_t i = 0; i < indices.size(); ++i) {
      const auto index = indices[i].to_number<uint64_t>();
      const auto value = static_cast<float>(SyntheticValues(parameter, seed)[index]);
      EXPECT_EQ(std::bit_cast<uint32_t>(value), number(object.at("f32").as_array()[i], 16))
          << parameter.name << " " << index;
      EXPECT_EQ(std::bit_cast<uint16_t>(tensor::to_bf16(value)),
                number(object.at("bf16").as_array()[i], 16))
          << parameter.name << " " << index;
    }
  }
}

base::Status write(const std::filesystem::path& directory, const json::object& config, DType dtype,
                   uint64_t seed, int team_size = 2) {
  const base::SystemClock clock;
  base::ThreadTeam team(team_size);
  return write_synthetic_checkpoint(directory, config, dtype, seed, team, clock);
}

std::string contents(const std::filesystem::path& path) {
  return base::read_text_file(path, 64 << 20).value();
}

TEST(SyntheticCheckpoint, IsAWholeModel) {
  for (const DType dtype : {DType::kF32, DType::kBF16}) {
    const base::ScratchDirectory scratch;
    const auto directory = scratch / "made" / "on the way";
    ASSERT_TRUE(write(directory, small_config(), dtype, 3).has_value());
    const ModelConfig config = load_model_config(directory).value();
    EXPECT_EQ(json_of(contents(directory / "config.json")).at("dtype"),
              dtype == DType::kF32 ? "float32" : "bfloat16");
    EXPECT_TRUE(config.synthetic_weights);
    EXPECT_FALSE(parse_model_config(small_config(), "of real weights").value().synthetic_weights);
    EXPECT_EQ(json_of(contents(directory / "config.json")).at(kSyntheticWeightsKey).at("seed"), 3);
    const auto checkpoint = tensor::Checkpoint::open(directory).value();
    const LoadPlan plan = plan_load(config, checkpoint, {}).value();
    EXPECT_TRUE(plan.findings.empty());
    for (const PlanRow& row : plan.rows) {
      const DType expected = row.parameter.role == Role::kRouterBias ? DType::kF32 : dtype;
      ASSERT_EQ(row.stored.data->dtype, expected) << row.parameter.name;
      const auto last = static_cast<uint64_t>(row.parameter.shape.num_elements().value()) - 1;
      for (const uint64_t index : {uint64_t{0}, last / 2, last}) {
        const auto value = static_cast<float>(SyntheticValues(row.parameter, 3)[index]);
        std::array<std::byte, 4> bytes{};
        const size_t width = tensor::size_bytes(expected);
        ASSERT_TRUE(checkpoint.read(*row.stored.data, index * width, {bytes.data(), width}));
        const auto wide = std::bit_cast<uint32_t>(bytes);
        EXPECT_EQ(wide, width == 4 ? std::bit_cast<uint32_t>(value)
                                   : std::bit_cast<uint16_t>(tensor::to_bf16(value)))
            << row.parameter.name << " " << index;
      }
    }
  }
}

TEST(SyntheticCheckpoint, FollowsFromTheSeedAlone) {
  const base::ScratchDirectory scratch;
  ASSERT_TRUE(write(scratch / "a", small_config(), DType::kBF16, 1, 1).has_value());
  ASSERT_TRUE(write(scratch / "b", small_config(), DType::kBF16, 1, 3).has_value());
  ASSERT_TRUE(write(scratch / "c", small_config(), DType::kBF16, 2, 3).has_value());
  const auto file = [&](const char* name) {
    return contents(scratch / name / "model.safetensors");
  };
  EXPECT_TRUE(file("a") == file("b"));
  EXPECT_FALSE(file("a") == file("c"));
}

TEST(SyntheticCheckpoint, RefusesToWriteOverFiles) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    const base::ScratchDirectory scratch;
    ASSERT_TRUE(base::write_text_file(scratch / name, "mine").has_value());
    const base::Status status = write(scratch.path(), small_config(), DType::kF32, 0);
    ASSERT_FALSE(status.has_value());
    EXPECT_TRUE(status.error().message.contains(std::string(name) + ": exists already"));
    EXPECT_EQ(contents(scratch / name), "mine");
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(scratch.path()), {}), 1);
  }
  const base::ScratchDirectory scratch;
  ASSERT_TRUE(base::write_text_file(scratch / "file", "mine").has_value());
  const base::Status status = write(scratch / "file", small_config(), DType::kF32, 0);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.contains("file: cannot create")) << status.error().message;
}

// The limit on file sizes stands for a full disk: writes beyond it fail.
TEST(SyntheticCheckpoint, LeavesNothingOnAFullDisk) {
  const base::ScratchDirectory scratch;
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small{.rlim_cur = 100'000, .rlim_max = limit.rlim_max};
  const auto previous = std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const base::Status status = write(scratch.path(), small_config(), DType::kF32, 0);
  ::setrlimit(RLIMIT_FSIZE, &limit);
  std::signal(SIGXFSZ, previous);
  ASSERT_FALSE(status.has_value());
  EXPECT_TRUE(status.error().message.contains("model.safetensors: write failed"))
      << status.error().message;
  EXPECT_TRUE(std::filesystem::is_empty(scratch.path()));
}

TEST(SyntheticCheckpoint, LeavesNoWeightsWithoutAConfig) {
  const base::ScratchDirectory scratch;
  // In the way of the file under which config.json is written.
  const auto obstacle = scratch / fmt::format("config.json.partial-{}", ::getpid());
  std::filesystem::create_directory(obstacle);
  ASSERT_FALSE(write(scratch.path(), small_config(), DType::kF32, 0).has_value());
  EXPECT_FALSE(std::filesystem::exists(scratch / "model.safetensors"));
}

json::object reshaped(const json::object& config, const SyntheticShape& shape) {
  auto result = reshape_config(config, shape, "config.json");
  CHECK(result.has_value(), result ? "" : result.error().message);
  return result->get_object();
}

TEST(ReshapedConfig, KeepsOneDenseLayerAndTheSharingPattern) {
  const auto object = reshaped(golden_config("configs/glm-5.2-fp8.json"), {.layers = 6});
  EXPECT_FALSE(object.contains("quantization_config"));
  EXPECT_FALSE(object.contains("mlp_layer_types"));
  EXPECT_EQ(object.at("indexer_types"),
            json_of(R"(["full", "shared", "shared", "shared", "full", "shared"])"));
  const ModelConfig config = parsed(object);
  EXPECT_EQ(config.num_hidden_layers, 6);
  EXPECT_EQ(config.first_k_dense_replace, 1);
  EXPECT_EQ(config.num_nextn_predict_layers, 1);
  EXPECT_EQ(config.n_routed_experts, 256);
  EXPECT_EQ(config.hidden_size, 6144);
}

TEST(ReshapedConfig, ChangesOnlyWhatIsAsked) {
  const json::object original = golden_config("configs/glm-5.2.json");
  EXPECT_EQ(reshaped(original, {}), original);
  const ModelConfig config = parsed(reshaped(original, {.experts = 16, .keep_mtp = false}));
  EXPECT_EQ(config.num_hidden_layers, 78);
  EXPECT_EQ(config.n_routed_experts, 16);
  EXPECT_EQ(config.num_nextn_predict_layers, 0);
  EXPECT_EQ(std::ranges::count(config.indexer_types, IndexerType::kFull), 21);
}

TEST(ReshapedConfig, FollowsTheFamily) {
  const ModelConfig glm51 = parsed(reshaped(golden_config("configs/glm-5.1.json"), {.layers = 3}));
  EXPECT_EQ(std::ranges::count(glm51.indexer_types, IndexerType::kFull), 3) << "it never shares";
  const auto flash = reshaped(golden_config("configs/glm-4.7-flash.json"), {.layers = 2});
  EXPECT_FALSE(flash.contains("indexer_types"));
  EXPECT_EQ(parsed(flash).num_hidden_layers, 2);
  json::object sparse = small_config();
  sparse["first_k_dense_replace"] = 0;
  EXPECT_EQ(parsed(reshaped(sparse, {.layers = 1})).first_k_dense_replace, 0);
}

TEST(ReshapedConfig, RefusesWhatNoModelCanBe) {
  const auto refusal = [](const char* file, const SyntheticShape& shape) {
    const auto result = reshape_config(golden_config(file), shape, "config.json");
    return result ? std::string("accepted") : result.error().message;
  };
  EXPECT_TRUE(refusal("configs/glm-5.2.json", {.experts = 7}).contains("\"num_experts_per_tok\""));
  EXPECT_TRUE(refusal("configs/deepseek-v3.json", {.experts = 12}).contains("groups"));
  EXPECT_TRUE(refusal("configs/glm-5.2.json", {.layers = 0}).contains("\"num_hidden_layers\""));
  EXPECT_TRUE(refusal("configs/glm-5.2.json", {.layers = -1}).contains("\"num_hidden_layers\""));
  EXPECT_FALSE(reshape_config(json_of("[]"), {}, "config.json").has_value());
}

TEST(NamedConfigs, AreWhole) {
  for (const char* name : {"tiny", "glm-5.2", "glm-4.7-flash", "deepseek-v3.2"}) {
    ASSERT_NE(named_config(name), nullptr) << name;
    const ModelConfig config = parsed(json_of(named_config(name)).get_object());
    EXPECT_TRUE(config.unread_keys.empty());
    EXPECT_TRUE(named_configs().contains(name));
  }
  EXPECT_EQ(named_config("gpt-2"), nullptr);
}

TEST(NamedConfigs, AreThePublishedOnes) {
  for (const std::string name : {"glm-5.2", "glm-4.7-flash", "deepseek-v3.2"}) {
    SCOPED_TRACE(name);
    const ModelConfig published = parsed(golden_config("configs/" + name + ".json"));
    const ModelConfig own = parsed(json_of(named_config(name)).get_object());
    const auto ours = list_parameters(own);
    const auto theirs = list_parameters(published);
    ASSERT_EQ(ours.size(), theirs.size());
    for (size_t i = 0; i < ours.size(); ++i) {
      ASSERT_EQ(ours[i].name, theirs[i].name);
      ASSERT_EQ(ours[i].shape, theirs[i].shape);
    }
    EXPECT_EQ(own.rope_theta, published.rope_theta);
    EXPECT_EQ(own.yarn, published.yarn);
    EXPECT_EQ(own.rms_norm_eps, published.rms_norm_eps);
    EXPECT_EQ(own.n_group, published.n_group);
    EXPECT_EQ(own.topk_group, published.topk_group);
    EXPECT_EQ(own.num_experts_per_tok, published.num_experts_per_tok);
    EXPECT_EQ(own.routed_scaling_factor, published.routed_scaling_factor);
    EXPECT_EQ(own.index_topk, published.index_topk);
    EXPECT_EQ(own.max_position_embeddings, published.max_position_embeddings);
    EXPECT_EQ(own.eos_token_ids, published.eos_token_ids);
  }
}

}  // namespace
}  // namespace ingot::model
