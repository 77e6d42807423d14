#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/json.h"
#include "base/thread_team.h"
#include "engine/model_runner.h"
#include "model/named_configs.h"
#include "model/synthetic_checkpoint.h"

namespace ingot::engine {

// The config "tiny" with random weights, written to a temporary directory and loaded from there.
class TestModel {
 public:
  explicit TestModel(int threads, model::MtpChoice mtp = model::MtpChoice::kLeaveOut)
      : team(threads) {
    std::string name = (std::filesystem::temp_directory_path() / "ingot-engine-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
    base::json::object config =
        base::parse_json(model::named_config("tiny"), "tiny").value().as_object();
    // Small enough for the thread sanitizer.
    config["num_hidden_layers"] = 4;
    config["vocab_size"] = 64;
    config["index_topk"] = 8;
    config["max_position_embeddings"] = 48;
    config["eos_token_id"] = base::json::array{};
    const auto written = model::write_synthetic_checkpoint(directory_, config, tensor::DType::kF32,
                                                           /*seed=*/5, team, clock);
    EXPECT_TRUE(written.has_value()) << written.error().message;
    loaded = LoadedModel::load(directory_, {.mtp = mtp}, team, clock).value();
  }
  ~TestModel() { std::filesystem::remove_all(directory_); }

  std::unique_ptr<ModelRunner> runner(const RunnerCapacity& capacity) {
    return ModelRunner::create(*loaded, team, capacity).value();
  }

  base::SystemClock clock;
  base::ThreadTeam team;
  std::unique_ptr<LoadedModel> loaded;

 private:
  std::filesystem::path directory_;
};

}  // namespace ingot::engine
