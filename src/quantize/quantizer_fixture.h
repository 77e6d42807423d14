#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/mapped_file.h"
#include "base/output_file.h"
#include "base/random.h"
#include "base/scratch_directory.h"
#include "base/thread_team.h"
#include "model/config_fixture.h"
#include "model/quantized_fixture.h"
#include "quantize/quantizer.h"

namespace ingot::quantize {

// A small model on disk, in several files, with whatever a test puts beside its weights.
class SourceModel {
 public:
  explicit SourceModel(size_t num_shards, const model::FormOf& form_of = bf16,
                       const base::json::object& config = model::small_config()) {
    write("config.json", base::pretty_json(config));
    std::vector<model::StoredParameter> stored;
    for (const model::Parameter& parameter : model::list_parameters(model::parsed(config))) {
      if (parameter.optional) continue;
      std::vector<float> values;
      const base::RandomStream stream = base::random_stream(3, parameter.name);
      for (int64_t i = 0; i < parameter.shape.num_elements(); ++i) {
        values.push_back(static_cast<float>(0.1 * stream.normal(static_cast<uint64_t>(i))));
      }
      stored.push_back(model::store(parameter, values, form_of(parameter)));
    }
    write_shards(stored, num_shards);
  }

  static model::StoredForm bf16(const model::Parameter& parameter) {
    return parameter.role == model::Role::kRouterBias ? model::StoredForm::kF32
                                                      : model::StoredForm::kBF16;
  }

  const std::filesystem::path& path() const { return scratch_.path(); }

  void write(const std::filesystem::path& name, std::string_view text) {
    std::filesystem::create_directories((scratch_ / name).parent_path());
    CHECK(base::write_text_file(scratch_ / name, text).has_value());
  }

  static std::string shard_name(size_t shard, size_t num_shards) {
    return fmt::format("model-{:05}-of-{:05}.safetensors", shard + 1, num_shards);
  }

 private:
  // Values into the shards in turn, and scales into the one after that of their values.
  void write_shards(const std::vector<model::StoredParameter>& stored, size_t num_shards) {
    std::vector<std::vector<tensor::TensorSpec>> specs(num_shards);
    std::vector<std::vector<std::byte>> bytes(num_shards);
    base::json::object map;
    for (size_t i = 0; i < stored.size(); ++i) {
      for (size_t part = 0; part < stored[i].specs.size(); ++part) {
        const size_t shard = (i * num_shards / stored.size() + part) % num_shards;
        specs[shard].push_back(stored[i].specs[part]);
        const std::vector<std::byte>& data = stored[i].bytes[part];
        bytes[shard].insert(bytes[shard].end(), data.begin(), data.end());
        map[stored[i].specs[part].name] = shard_name(shard, num_shards);
      }
    }
    for (size_t shard = 0; shard < num_shards; ++shard) {
      auto writer =
          tensor::SafetensorsWriter::create(scratch_ / shard_name(shard, num_shards), specs[shard])
              .value();
      CHECK(writer.append(bytes[shard]).has_value() && writer.finish().has_value());
    }
    write("model.safetensors.index.json",
          base::compact_json(base::json::object{{"weight_map", std::move(map)}}));
  }

  base::ScratchDirectory scratch_;
};

// Everything that quantize() needs of a source, opened once.
struct OpenedSource {
  explicit OpenedSource(const std::filesystem::path& directory, Recipe recipe)
      : path(directory),
        config_json(
            model::json_of(base::read_text_file(directory / "config.json", 1 << 20).value())),
        config(model::parse_model_config(config_json, "config.json").value()),
        checkpoint(tensor::Checkpoint::open(directory).value()) {
    const model::LoadPlan load_plan = model::plan_load(config, checkpoint, {}).value();
    auto planned = plan_quantization(config, load_plan, checkpoint, std::move(recipe));
    CHECK(planned.has_value(), planned ? "" : planned.error().message);
    plan = *std::move(planned);
  }

  base::Result<QuantizationReport> quantize_to(const std::filesystem::path& destination,
                                               const QuantizerOptions& options = {},
                                               int threads = 2) const {
    base::ThreadTeam team(threads);
    const base::SystemClock clock;
    return quantize(checkpoint, config_json, plan, path, destination, options, team, clock);
  }

  std::filesystem::path path;
  base::json::value config_json;
  model::ModelConfig config;
  tensor::Checkpoint checkpoint;
  QuantizationPlan plan;
};

// One of everything: kept attention and router, FP8 dense layers, MXFP4 experts.
inline Recipe mixed_recipe() {
  return {.name = "mixed",
          .description = "for tests",
          .rules = {{.pattern = "*.experts.*", .treatment = Treatment::kMxfp4},
                    {.pattern = "*.shared_experts.*", .treatment = Treatment::kMxfp4},
                    {.pattern = "model.layers.0.mlp.*", .treatment = Treatment::kFp8Channel},
                    {.pattern = "*", .treatment = Treatment::kKeep}}};
}

inline std::string contents(const std::filesystem::path& path) {
  return base::read_text_file(path, 1 << 28).value();
}

// All files of a directory but the manifest, which says when it was made.
inline std::map<std::string, std::string> snapshot(const std::filesystem::path& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    const std::string name = entry.path().lexically_relative(directory).string();
    if (name != kManifestName) files[name] = contents(entry.path());
  }
  return files;
}

inline std::string text_of(const QuantizationReport& report) {
  std::string text;
  for (const TensorReport& tensor : report.tensors) text += base::compact_json(to_json(tensor));
  return text;
}

}  // namespace ingot::quantize
