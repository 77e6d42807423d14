#include "tensor/checkpoint.h"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include "base/check.h"
#include "tensor/checkpoint_index.h"

namespace ingot::tensor {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingleFile = "model.safetensors";
constexpr std::string_view kIndexFile = "model.safetensors.index.json";
constexpr uint64_t kIndexBytesMax = 100'000'000;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

class HeaderHash {
 public:
  HeaderHash() : state_(XXH3_createState(), &XXH3_freeState) {
    CHECK(state_ != nullptr);
    XXH3_64bits_reset(state_.get());
  }
  void update(std::span<const std::byte> bytes) {
    XXH3_64bits_update(state_.get(), bytes.data(), bytes.size());
  }
  std::string hex() const { return fmt::format("{:016x}", XXH3_64bits_digest(state_.get())); }

 private:
  std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state_;
};

// What the directory says it holds: an index, or nothing for the one file model.safetensors.
base::Result<std::optional<CheckpointIndex>> read_index(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return base::error("{}: not a directory; name the one that holds config.json and {}",
                       directory.string(), kSingleFile);
  }
  const bool has_single = is_there(directory / kSingleFile);
  const fs::path index_path = directory / kIndexFile;
  if (!is_there(index_path)) {
    if (has_single) return std::nullopt;
    return base::error("{}: neither {} nor {} is here; download the model's safetensors files",
                       directory.string(), kSingleFile, kIndexFile);
  }
  const std::string text = TRY(base::read_text_file(index_path, kIndexBytesMax));
  CheckpointIndex index = TRY(parse_checkpoint_index(text, index_path.string()));
  const auto& shards = index.shards;
  if (has_single && std::ranges::find(shards, kSingleFile) == shards.end()) {
    return base::error("{}: {} is here and {} does not list it; remove the one that is left over",
                       directory.string(), kSingleFile, kIndexFile);
  }
  return index;
}

base::Status check_shards_present(const fs::path& directory,
                                  const std::vector<std::string>& shards) {
  std::vector<std::string> missing;
  for (const std::string& shard : shards) {
    if (!is_there(directory / shard)) missing.push_back(shard);
  }
  if (missing.empty()) return {};
  return base::error("{}: {} of {} shards are missing, download them: {}", directory.string(),
                     missing.size(), shards.size(), fmt::join(missing, ", "));
}

base::Result<std::vector<TensorInfo>> read_header(const base::InputFile& file, HeaderHash& hash) {
  const std::string source = file.path().string();
  std::array<std::byte, 8> first_eight{};
  if (file.size_bytes() >= first_eight.size()) TRY(file.read_at(0, first_eight));
  const uint64_t head_bytes = TRY(safetensors_head_bytes(first_eight, file.size_bytes(), source));
  const base::MappedFile head = TRY(base::MappedFile::map(file, head_bytes));
  hash.update(head.bytes());
  return parse_safetensors_header(head.bytes(), file.size_bytes(), source);
}

// REQUIRES: no name repeats in the checkpoint.
base::Status check_against_index(const CheckpointIndex& index, const Checkpoint& checkpoint,
                                 const fs::path& directory) {
  const std::vector<TensorInfo>& tensors = checkpoint.tensors();
  const std::string source = (directory / kIndexFile).string();
  for (const TensorInfo& tensor : tensors) {
    const auto listed = index.shard_of.find(tensor.name);
    if (listed == index.shard_of.end()) {
      return base::error(
          "{}: tensor {:?} is in {} and the index does not list it; download both "
          "again",
          source, tensor.name, index.shards[tensor.file]);
    }
    if (listed->second != tensor.file) {
      return base::error("{}: tensor {:?} is in {} and the index says {}; download both again",
                         source, tensor.name, index.shards[tensor.file],
                         index.shards[listed->second]);
    }
  }
  if (tensors.size() == index.shard_of.size()) return {};
  // The smallest name, so that the same files always give the same line.
  std::string_view absent;
  for (const auto& [name, shard] : index.shard_of) {
    if (checkpoint.find(name) != nullptr) continue;
    if (absent.data() == nullptr || name < absent) absent = name;
  }
  return base::error(
      "{}: {} of its {} tensors are in no shard, {:?} is one that {} should hold; "
      "download both again",
      source, index.shard_of.size() - tensors.size(), index.shard_of.size(), absent,
      index.shards[index.shard_of.at(std::string(absent))]);
}

}  // namespace

bool Checkpoint::exists(const fs::path& directory) {
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(directory, code)) {
    const fs::path name = entry.path().filename();
    if (name.extension() == ".safetensors" || name == kIndexFile) return true;
  }
  return false;
}

base::Result<Checkpoint> Checkpoint::open(const fs::path& directory) {
  const std::optional<CheckpointIndex> index = TRY(read_index(directory));
  const std::vector<std::string> shards =
      index ? index->shards : std::vector<std::string>{std::string(kSingleFile)};
  TRY(check_shards_present(directory, shards));

  Checkpoint checkpoint;
  HeaderHash hash;
  for (const std::string& shard : shards) {
    base::InputFile file = TRY(base::InputFile::open(directory / shard));
    std::vector<TensorInfo> tensors = TRY(read_header(file, hash));
    for (TensorInfo& tensor : tensors) {
      tensor.file = static_cast<uint32_t>(checkpoint.files_.size());
      checkpoint.size_bytes_ += tensor.size_bytes;
      checkpoint.tensors_.push_back(std::move(tensor));
    }
    checkpoint.files_.push_back(std::move(file));
  }
  checkpoint.header_hash_ = hash.hex();

  checkpoint.by_name_.reserve(checkpoint.tensors_.size());
  for (size_t i = 0; i < checkpoint.tensors_.size(); ++i) {
    const auto& tensor = checkpoint.tensors_[i];
    const auto [other, inserted] = checkpoint.by_name_.try_emplace(tensor.name, i);
    if (inserted) continue;
    return base::error("{}: tensor {:?} is in both {} and {}; download both again",
                       directory.string(), tensor.name,
                       shards[checkpoint.tensors_[other->second].file], shards[tensor.file]);
  }
  if (index) TRY(check_against_index(*index, checkpoint, directory));
  return checkpoint;
}

Checkpoint Checkpoint::of_headers(std::vector<TensorInfo> tensors) {
  Checkpoint checkpoint;
  checkpoint.tensors_ = std::move(tensors);
  for (size_t i = 0; i < checkpoint.tensors_.size(); ++i) {
    const TensorInfo& tensor = checkpoint.tensors_[i];
    CHECK(checkpoint.by_name_.try_emplace(tensor.name, i).second, tensor.name);
    checkpoint.size_bytes_ += tensor.size_bytes;
  }
  return checkpoint;
}

const TensorInfo* Checkpoint::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &tensors_[found->second];
}

base::Status Checkpoint::read(const TensorInfo& tensor, uint64_t first,
                              std::span<std::byte> out) const {
  CHECK(first <= tensor.size_bytes && out.size() <= tensor.size_bytes - first,
        "read outside the tensor");
  return files_[tensor.file].read_at(tensor.offset + first, out);
}

void Checkpoint::drop_from_page_cache(const TensorInfo& tensor) const {
  files_[tensor.file].drop_from_page_cache(tensor.offset, tensor.size_bytes);
}

}  // namespace ingot::tensor
