#include "quantize/shard_writer.h"

#include <algorithm>
#include <mutex>
#include <numeric>

#include "base/check.h"

namespace ingot::quantize {
namespace {

// Largest first, so that no member begins a large one when the others are done.
std::vector<size_t> largest_first(const PlannedShard& shard) {
  std::vector<size_t> order(shard.tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{},
                           [&](size_t i) { return shard.tensors[i].source.size_bytes(); });
  return order;
}

// Gives the tensors of a shard to the members of a team, one after another. `each(index, member)`
// gives a Status; the first error ends the work. An error without words is of one that was stopped.
template <typename Each>
base::Result<Ending> for_each_tensor(const PlannedShard& shard, base::ThreadTeam& team,
                                     SharedWork& work, const Each& each) {
  const std::vector<size_t> order = largest_first(shard);
  std::atomic<size_t> next = 0;
  std::mutex mutex;
  base::Error failure;
  team.run([&](int member) {
    for (size_t i = next++; i < order.size() && !work.stopped; i = next++) {
      const base::Status status = each(order[i], member);
      if (status) continue;
      const std::scoped_lock lock(mutex);
      if (failure.message.empty()) failure = status.error();
      work.stopped = true;
    }
  });
  if (!failure.message.empty()) return std::unexpected(failure);
  return work.stopped ? Ending::kInterrupted : Ending::kDone;
}

}  // namespace

ShardWriter::ShardWriter(const tensor::Checkpoint& checkpoint,
                         const std::vector<SourceFile>& source_files,
                         const QuantizerOptions& options, uint64_t buffer_bytes,
                         base::ThreadTeam& team)
    : checkpoint_(checkpoint),
      source_files_(source_files),
      functions_(RoundingFunctions::choose(options.scale_search, options.target)),
      team_(team) {
  for (int member = 0; member < team.size(); ++member) {
    writers_.push_back(std::make_unique<TensorWriter>(checkpoint, options.dequantization,
                                                      functions_, buffer_bytes));
  }
}

base::Status ShardWriter::check_source(const PlannedShard& shard) const {
  for (const uint32_t file : source_files_of(shard)) {
    TRY(check_unchanged(checkpoint_, source_files_, file));
  }
  return {};
}

base::Result<std::optional<FinishedShard>> ShardWriter::write(const PlannedShard& shard,
                                                              const std::filesystem::path& path,
                                                              SharedWork& work) {
  TRY(check_source(shard));
  std::vector<tensor::TensorSpec> outputs;
  std::vector<size_t> first_outputs;
  for (const PlannedTensor& tensor : shard.tensors) {
    first_outputs.push_back(outputs.size());
    outputs.insert(outputs.end(), tensor.outputs.begin(), tensor.outputs.end());
  }
  FinishedShard finished{.file_name = shard.file_name,
                         .file_bytes = tensor::SafetensorsWriter::file_bytes(outputs),
                         .sources = {},
                         .tensors = std::vector<TensorReport>(shard.tensors.size())};
  auto writer = TRY(tensor::SafetensorsWriter::create(path, std::move(outputs)));
  TRY(writer.reserve());
  const Ending ending =
      TRY(for_each_tensor(shard, team_, work, [&](size_t i, int member) -> base::Status {
        finished.tensors[i] = TRY(writers_[static_cast<size_t>(member)]->write(
            shard.tensors[i], first_outputs[i], writer, work, member));
        return {};
      }));
  if (ending == Ending::kInterrupted) return std::nullopt;
  TRY(check_source(shard));
  for (const uint32_t file : source_files_of(shard)) {
    finished.sources.push_back(source_files_[file]);
  }
  TRY(writer.finish());
  return finished;
}

base::Result<Ending> ShardWriter::check_hashes(const PlannedShard& shard,
                                               const FinishedShard& finished, SharedWork& work) {
  TRY(check_source(shard));
  const Ending ending =
      TRY(for_each_tensor(shard, team_, work, [&](size_t i, int member) -> base::Status {
        const PlannedTensor& tensor = shard.tensors[i];
        const std::string hash =
            TRY(writers_[static_cast<size_t>(member)]->hash(tensor, work, member));
        if (hash == finished.tensors[i].source_hash) return {};
        return base::error(
            "{}: changed since {} was made from it (tensor {}); put the old file back, or start "
            "anew "
            "in another directory",
            checkpoint_.path_of(*tensor.source.data).string(), shard.file_name,
            tensor.source.data->name);
      }));
  TRY(check_source(shard));
  return ending;
}

}  // namespace ingot::quantize
