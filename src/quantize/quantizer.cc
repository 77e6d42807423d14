#include "quantize/quantizer.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/output_file.h"
#include "base/progress.h"
#include "base/provenance.h"
#include "model/load_plan.h"
#include "quantize/destination.h"
#include "quantize/quark_config.h"
#include "quantize/quark_json.h"
#include "quantize/row_chunks.h"
#include "quantize/shard_writer.h"

namespace ingot::quantize {
namespace {

namespace json = base::json;
namespace fs = std::filesystem;

// Besides data: headers, index, config, and the manifest, which grows with every shard.
constexpr uint64_t kMarginBytes = uint64_t{1} << 20;
constexpr uint64_t kMarginBytesPerTensor = 4096;

uint64_t file_bytes(const PlannedShard& shard) {
  std::vector<tensor::TensorSpec> outputs;
  for (const PlannedTensor& tensor : shard.tensors) {
    outputs.insert(outputs.end(), tensor.outputs.begin(), tensor.outputs.end());
  }
  return tensor::SafetensorsWriter::file_bytes(outputs);
}

RunIdentity identity_of(const QuantizationPlan& plan, const QuantizerOptions& options,
                        const std::vector<SourceFile>& files, std::string model_hash) {
  return {.model_hash = std::move(model_hash),
          .source_files = files,
          .recipe = plan.recipe.name,
          .rules = plan.recipe.rules,
          .dequantization = std::string(name(options.dequantization)),
          .scale_search = std::string(name(options.scale_search)),
          .layout_hash = layout_hash(plan)};
}

// Whether rows of a manifest are those of the shard that it names.
bool fits(const FinishedShard& finished, const PlannedShard& shard) {
  return finished.file_bytes == file_bytes(shard) &&
         std::ranges::equal(finished.tensors, shard.tensors, {}, &TensorReport::name,
                            [](const PlannedTensor& tensor) -> const std::string& {
                              return tensor.source.data->name;
                            });
}

// One call of quantize().
class Run {
 public:
  Run(const tensor::Checkpoint& source, const QuantizationPlan& plan,
      const QuantizerOptions& options, base::ThreadTeam& team, const base::Clock& clock)
      : source_(source), plan_(plan), options_(options), team_(team), clock_(clock) {}

  base::Result<QuantizationReport> go(const json::value& source_config,
                                      const fs::path& source_directory, const fs::path& path) {
    const uint64_t buffer_bytes = TRY(member_buffer_bytes(plan_, options_, team_.size()));
    const std::vector<SideFile> side_files = TRY(begin(source_directory, path));
    Destination destination =
        TRY(Destination::open(path, source_directory, manifest_.identity, plan_, side_files));
    ShardWriter writer(source_, source_files_, options_, buffer_bytes, team_);
    const std::vector<SourceFile> earlier_files = destination.earlier_source_files();
    const std::vector<Doubtful> doubtful = TRY(take_up(TRY(destination.take_finished_shards())));
    const Ending taken = TRY(compare(doubtful, writer));
    if (taken == Ending::kInterrupted) return report_of(Ending::kInterrupted);
    if (destination.is_complete()) return complete_already();
    TRY(check_unread_sources(earlier_files));
    TRY(remove_unlisted_shards());
    static_cast<void>(TRY(check_space(path, bytes_to_write(side_files))));
    if (options_.begins) options_.begins();
    TRY(write_manifest());
    if (TRY(write_shards(writer)) == Ending::kInterrupted) return report_of(Ending::kInterrupted);
    TRY(base::write_text_file(path / "model.safetensors.index.json",
                              quark_json(quark_index(plan_, total_file_bytes()))));
    TRY(copy_side_files(side_files, source_directory, path));
    TRY(base::write_text_file(path / "config.json",
                              quark_json(quark_config(source_config, plan_))));
    return report_of(Ending::kDone);
  }

  base::Result<Outlook> look_ahead(const fs::path& source_directory, const fs::path& path) {
    static_cast<void>(TRY(member_buffer_bytes(plan_, options_, team_.size())));
    const std::vector<SideFile> side_files = TRY(begin(source_directory, path));
    auto destination = TRY(Destination::look(path, source_directory, manifest_.identity));
    Outlook outlook;
    uint64_t removed_bytes = 0;
    if (destination) {
      outlook.is_taken_up = destination->is_taken_up();
      outlook.is_complete = destination->is_complete();
      removed_bytes = TRY(destination->left_over_bytes(plan_, side_files));
      const std::vector<SourceFile> earlier_files = destination->earlier_source_files();
      static_cast<void>(TRY(take_up(TRY(destination->take_finished_shards()))));
      if (outlook.is_complete) {
        TRY(check_is_whole());
      } else {
        TRY(check_unread_sources(earlier_files));
      }
      removed_bytes += unlisted_bytes();
    }
    outlook.num_finished_shards = manifest_.shards.size();
    if (!outlook.is_complete) outlook.bytes_to_write_max = bytes_to_write(side_files);
    outlook.free_bytes = TRY(check_space(path, outlook.bytes_to_write_max, removed_bytes));
    return outlook;
  }

 private:
  // A finished shard whose source files do not look as they did.
  struct Doubtful {
    const PlannedShard* shard = nullptr;
    size_t finished = 0;  // which of the manifest's
  };

  // What is known before the destination is.
  base::Result<std::vector<SideFile>> begin(const fs::path& source_directory,
                                            const fs::path& path) {
    path_ = path;
    source_files_ = TRY(look_at_source(source_));
    const std::string config_text = TRY(model::read_config_text(source_directory));
    manifest_.identity =
        identity_of(plan_, options_, source_files_, model::model_hash(config_text, source_));
    manifest_.num_shards = plan_.shards.size();
    return list_side_files(source_directory);
  }

  const PlannedShard* planned(std::string_view file_name) const {
    const auto found = std::ranges::find(plan_.shards, file_name, &PlannedShard::file_name);
    return found == plan_.shards.end() ? nullptr : &*found;
  }

  bool is_finished(const PlannedShard& shard) const {
    return std::ranges::find(manifest_.shards, shard.file_name, &FinishedShard::file_name) !=
           manifest_.shards.end();
  }

  QuantizationReport report_of(Ending ending) {
    QuantizationReport report = std::move(manifest_).report();
    report.complete = ending == Ending::kDone;
    return report;
  }

  // Shards of an earlier run, and which of them have to be compared with their sources.
  base::Result<std::vector<Doubtful>> take_up(std::vector<FinishedShard> finished) {
    std::vector<Doubtful> doubtful;
    for (size_t i = 0; i < finished.size(); ++i) {
      const PlannedShard* shard = planned(finished[i].file_name);
      if (shard == nullptr || !fits(finished[i], *shard)) {
        return base::error(
            "{}: its rows are not those of this model; remove the directory to "
            "start anew",
            (path_ / kManifestName).string());
      }
      std::vector<SourceFile> now;
      for (const uint32_t file : source_files_of(*shard)) now.push_back(source_files_[file]);
      if (now == finished[i].sources) continue;
      doubtful.push_back({.shard = shard, .finished = i});
      finished[i].sources = std::move(now);
    }
    manifest_.shards = std::move(finished);
    return doubtful;
  }

  // The sources of finished shards must be what they were.
  base::Result<Ending> compare(const std::vector<Doubtful>& doubtful, ShardWriter& writer) {
    uint64_t bytes = 0;
    for (const auto& [shard, finished] : doubtful) bytes += shard->source_bytes;
    base::Progress progress("comparing", bytes, base::Progress::Unit::kBytes, clock_);
    SharedWork work{.progress = progress, .interrupted = options_.interrupted};
    for (const auto& [shard, finished] : doubtful) {
      const Ending ending = TRY(writer.check_hashes(*shard, manifest_.shards[finished], work));
      if (ending == Ending::kInterrupted) return ending;
    }
    return Ending::kDone;
  }

  // What nothing was made of yet has no hashes, so that only its age tells whether it is still what
  // the run began with.
  base::Status check_unread_sources(const std::vector<SourceFile>& earlier_files) const {
    if (earlier_files.empty()) return {};
    for (const PlannedShard& shard : plan_.shards) {
      if (is_finished(shard)) continue;
      for (const uint32_t file : source_files_of(shard)) {
        if (source_files_[file].is_as_old_as(earlier_files[file])) continue;
        return base::error(
            "{}: was written anew since the run began that stands in {}; put the old file back "
            "with "
            "its time of change, or start anew in another directory",
            source_.files()[file].path().string(), path_.string());
      }
    }
    return {};
  }

  // A run that is killed between a shard and the manifest leaves one that no row speaks of. It goes
  // before the new one needs its space.
  base::Status remove_unlisted_shards() const {
    for (const PlannedShard& shard : plan_.shards) {
      if (is_finished(shard)) continue;
      std::error_code code;
      fs::remove(path_ / shard.file_name, code);
      if (!code) continue;
      return base::error("{}: cannot be removed: {}", (path_ / shard.file_name).string(),
                         code.message());
    }
    return {};
  }

  // Of what remove_unlisted_shards() would remove.
  uint64_t unlisted_bytes() const {
    uint64_t bytes = 0;
    for (const PlannedShard& shard : plan_.shards) {
      if (is_finished(shard)) continue;
      std::error_code code;
      const uint64_t size_bytes = fs::file_size(path_ / shard.file_name, code);
      if (!code) bytes += size_bytes;
    }
    return bytes;
  }

  base::Status check_is_whole() const {
    if (manifest_.shards.size() == plan_.shards.size()) return {};
    return base::error(
        "{}: lists fewer files than the complete model has; remove config.json beside it to have "
        "the others made",
        (path_ / kManifestName).string());
  }

  // The program may have been killed after the last file, or the command is given again.
  base::Result<QuantizationReport> complete_already() {
    TRY(check_is_whole());
    base::log_info(fmt::format("{}: complete already; nothing is written", path_.string()));
    return report_of(Ending::kDone);
  }

  uint64_t bytes_to_write(const std::vector<SideFile>& side_files) const {
    uint64_t bytes = kMarginBytes;
    for (const PlannedShard& shard : plan_.shards) {
      bytes += shard.tensors.size() * kMarginBytesPerTensor;
      if (!is_finished(shard)) bytes += file_bytes(shard);
    }
    for (const SideFile& file : side_files) bytes += file.size_bytes;
    return bytes;
  }

  uint64_t total_file_bytes() const {
    uint64_t bytes = 0;
    for (const FinishedShard& shard : manifest_.shards) bytes += shard.file_bytes;
    return bytes;
  }

  base::Status write_manifest() {
    // In the order of the plan, whatever was made again.
    std::ranges::sort(manifest_.shards, {}, [&](const FinishedShard& shard) {
      return planned(shard.file_name) - plan_.shards.data();
    });
    json::object document = base::result_document(
        "quantization", {.model_hash = manifest_.identity.model_hash,
                         .threads = team_.size(),
                         .arithmetic = {.target = std::string(kernels::name(options_.target))},
                         .seed = {}});
    return quantize::write_manifest(path_ / kManifestName, std::move(document), manifest_);
  }

  base::Result<Ending> write_shards(ShardWriter& writer) {
    uint64_t source_bytes = 0;
    for (const PlannedShard& shard : plan_.shards) {
      if (!is_finished(shard)) source_bytes += shard.source_bytes;
    }
    base::Progress progress("quantizing", source_bytes, base::Progress::Unit::kBytes, clock_);
    SharedWork work{.progress = progress, .interrupted = options_.interrupted};
    for (const PlannedShard& shard : plan_.shards) {
      if (is_finished(shard)) continue;
      auto finished = TRY(writer.write(shard, path_ / shard.file_name, work));
      if (!finished) return Ending::kInterrupted;
      manifest_.shards.push_back(*std::move(finished));
      TRY(write_manifest());
    }
    return Ending::kDone;
  }

  const tensor::Checkpoint& source_;
  const QuantizationPlan& plan_;
  const QuantizerOptions& options_;
  base::ThreadTeam& team_;
  const base::Clock& clock_;
  fs::path path_;
  std::vector<SourceFile> source_files_;
  QuantizationManifest manifest_;
};

}  // namespace

std::string_view name(Dequantization dequantization) {
  return dequantization == Dequantization::kF32 ? "fp32" : "bf16";
}

std::string_view name(kernels::ScaleSearch scale_search) {
  return scale_search == kernels::ScaleSearch::kEven ? "even" : "mse";
}

base::Result<QuantizationReport> quantize(
    const tensor::Checkpoint& source, const json::value& source_config,
    const QuantizationPlan& plan, const fs::path& source_directory, const fs::path& destination,
    const QuantizerOptions& options, base::ThreadTeam& team, const base::Clock& clock) {
  return Run(source, plan, options, team, clock).go(source_config, source_directory, destination);
}

base::Result<Outlook> look_ahead(const tensor::Checkpoint& source, const QuantizationPlan& plan,
                                 const fs::path& source_directory, const fs::path& destination,
                                 const QuantizerOptions& options, base::ThreadTeam& team,
                                 const base::Clock& clock) {
  return Run(source, plan, options, team, clock).look_ahead(source_directory, destination);
}

}  // namespace ingot::quantize
